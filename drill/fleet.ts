/** The sources and destinations of a drill, with every kind of endpoint. */

/**
 * The id of a source. `till` sends few messages, because its endpoints accept none before the faults are
 * over. `sale` sends bursts. `space` sends changes of audiences.
 */
export type SourceId = 'web' | 'shop' | 'till' | 'sale' | 'space'

/**
 * How an endpoint answers. `healthy` answers at once, and `slow` within 1.5 s. `failing` refuses a quarter of
 * the requests. `dead` doesn't answer before the faults are over. `gone` always answers 404. `audience` keeps
 * the values of users, and mishandles some requests.
 */
export type Behaviour = 'healthy' | 'slow' | 'failing' | 'dead' | 'gone' | 'audience'

export type Destination = {
  id: string
  sources: readonly SourceId[]
  scheme: 'http' | 'https'
  behaviour: Behaviour
  /** Requests have a signature of Standard Webhooks in addition to `X-Signature`. */
  isStandard?: true
  /** The destination has a second URL, which always fails. */
  hasFailingHook?: true
  /** The drill disturbs the network to this destination at times. */
  isProxied?: true
  /** The destination is paused in the catalog at times. */
  isPaused?: true
  /** The header of its requests is edited in the catalog at times, and its messages are called back. */
  isEdited?: true
  /** The most requests a second from all workers. Each burst exceeds it, so messages wait in the queue. */
  perSecond?: number
}

export const secretOf = (id: string): string => `the shared secret of ${id}`

/** Returns the public key of a source, which clients send to the gateway. */
export const writeKeyOf = (source: SourceId): string => `write-key-of-${source}`
/** Returns the key of a source which only servers may have. */
export const serverKeyOf = (source: SourceId): string => `server-key-of-${source}`

export const destinations: readonly Destination[] = [
  { id: 'crm', sources: ['web', 'shop'], scheme: 'https', behaviour: 'healthy', isStandard: true },
  { id: 'warehouse', sources: ['web', 'shop'], scheme: 'http', behaviour: 'slow' },
  { id: 'mailer', sources: ['shop'], scheme: 'https', behaviour: 'failing', isEdited: true },
  { id: 'partner', sources: ['web'], scheme: 'http', behaviour: 'healthy', hasFailingHook: true },
  { id: 'ads', sources: ['shop'], scheme: 'https', behaviour: 'healthy', isProxied: true },
  { id: 'archive', sources: ['web'], scheme: 'http', behaviour: 'healthy', isPaused: true },
  { id: 'erp', sources: ['till'], scheme: 'http', behaviour: 'dead' },
  { id: 'legacy', sources: ['till'], scheme: 'https', behaviour: 'gone' },
  { id: 'loyalty', sources: ['sale'], scheme: 'https', behaviour: 'healthy', isPaused: true, perSecond: 20 },
  { id: 'members', sources: ['space'], scheme: 'https', behaviour: 'audience', isStandard: true },
  { id: 'campaigns', sources: ['space'], scheme: 'http', behaviour: 'audience' },
]

/** Returns the destinations that get the messages of a source. */
export function destinationsOf(source: SourceId): readonly Destination[] {
  return destinations.filter(({ sources }) => sources.includes(source))
}

/** Returns the content of the catalog. `urlOf` returns the URL of an endpoint without the path. */
export function catalogOf({
  urlOf,
  isPaused,
  edition,
}: {
  urlOf: (destination: Destination) => string
  isPaused: boolean
  /** The value of a header that requests to the destinations with `isEdited` have. */
  edition: number
}): { sources: object[]; destinations: object[] } {
  const worker = { 'X-Worker': '${CATALOG_WORKER}' }
  const headersOf = ({ isEdited }: Destination) => ({
    ...worker,
    ...(isEdited && { 'X-Edition': String(edition) }),
  })
  return {
    sources: [
      { id: 'web', writeKeys: [writeKeyOf('web')] },
      { id: 'shop', serverKeys: [serverKeyOf('shop')] },
      { id: 'till' },
      { id: 'sale' },
      { id: 'space', kind: 'audiences', serverKeys: [serverKeyOf('space')] },
    ],
    destinations: destinations.map((destination) => ({
      id: destination.id,
      sources: [...destination.sources],
      sharedSecret: secretOf(destination.id),
      ...(destination.isStandard && { signing: { standardWebhooks: true } }),
      ...(destination.isPaused && isPaused && { state: 'paused' }),
      ...(destination.perSecond !== undefined && { rateLimit: { perSecond: destination.perSecond } }),
      maxInFlight: 200,
      hooks: [
        { url: `${urlOf(destination)}/${destination.id}`, headers: headersOf(destination) },
        ...(destination.hasFailingHook
          ? [{ url: `${urlOf(destination)}/${failingHook}`, headers: headersOf(destination) }]
          : []),
      ],
    })),
  }
}

export const failingHook = 'failing'
