/** Who sends, and who gets it: all kinds of endpoints side by side. */

/** `till` has few messages: its endpoints take none. `space` is of audiences. */
export type SourceId = 'web' | 'shop' | 'till' | 'space'

/** `healthy` answers at once, `slow` within 1.5 s, `failing` refuses a quarter, `dead` never answers until the end, `gone` answers 404. */
export type Behaviour = 'healthy' | 'slow' | 'failing' | 'dead' | 'gone' | 'audience'

export type Destination = {
  id: string
  sources: readonly SourceId[]
  scheme: 'http' | 'https'
  behaviour: Behaviour
  /** Of Standard Webhooks, beside `X-Signature`. */
  isStandard?: true
  /** It has a second URL, which fails always. */
  hasFailingHook?: true
  /** The network to it is troubled at times. */
  isProxied?: true
  /** It is paused in the catalog at times. */
  isPaused?: true
}

export const secretOf = (id: string): string => `the shared secret of ${id}`

/** The gateway's key of a source, public or of a server. */
export const writeKeyOf = (source: SourceId): string => `write-key-of-${source}`
export const serverKeyOf = (source: SourceId): string => `server-key-of-${source}`

export const destinations: readonly Destination[] = [
  { id: 'crm', sources: ['web', 'shop'], scheme: 'https', behaviour: 'healthy', isStandard: true },
  { id: 'warehouse', sources: ['web', 'shop'], scheme: 'http', behaviour: 'slow' },
  { id: 'mailer', sources: ['shop'], scheme: 'https', behaviour: 'failing' },
  { id: 'partner', sources: ['web'], scheme: 'http', behaviour: 'healthy', hasFailingHook: true },
  { id: 'ads', sources: ['shop'], scheme: 'https', behaviour: 'healthy', isProxied: true },
  { id: 'archive', sources: ['web'], scheme: 'http', behaviour: 'healthy', isPaused: true },
  { id: 'erp', sources: ['till'], scheme: 'http', behaviour: 'dead' },
  { id: 'legacy', sources: ['till'], scheme: 'https', behaviour: 'gone' },
  { id: 'members', sources: ['space'], scheme: 'https', behaviour: 'audience', isStandard: true },
  { id: 'campaigns', sources: ['space'], scheme: 'http', behaviour: 'audience' },
]

/** Those who get the messages of a source. */
export function destinationsOf(source: SourceId): readonly Destination[] {
  return destinations.filter(({ sources }) => sources.includes(source))
}

/** What the catalog says; `urlOf` gives an endpoint's URL, without its path. */
export function catalogOf({
  urlOf,
  isPaused,
}: {
  urlOf: (destination: Destination) => string
  isPaused: boolean
}): { sources: object[]; destinations: object[] } {
  // oxlint-disable-next-line no-template-curly-in-string -- a variable of the catalog
  const headers = { 'X-Worker': '${CATALOG_WORKER}' }
  return {
    sources: [
      { id: 'web', writeKeys: [writeKeyOf('web')] },
      { id: 'shop', serverKeys: [serverKeyOf('shop')] },
      { id: 'till' },
      { id: 'space', kind: 'audiences', serverKeys: [serverKeyOf('space')] },
    ],
    destinations: destinations.map((destination) => ({
      id: destination.id,
      sources: [...destination.sources],
      sharedSecret: secretOf(destination.id),
      ...(destination.isStandard && { signing: { standardWebhooks: true } }),
      ...(destination.isPaused && isPaused && { state: 'paused' }),
      maxInFlight: 200,
      hooks: [
        { url: `${urlOf(destination)}/${destination.id}`, headers },
        ...(destination.hasFailingHook ? [{ url: `${urlOf(destination)}/${failingHook}`, headers }] : []),
      ],
    })),
  }
}

export const failingHook = 'failing'
