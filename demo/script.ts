/** What happens in the demo, and when: the destinations, what is wrong with each, and the times. */

/** Times in milliseconds from the first message. */
export const times = {
  /** Upstream services produce for this long. */
  productionMs: 12_000,
  /** Until then `mailer` answers 503. */
  mailerBackMs: 10_000,
  /** An audience is made, by a sync of all of its members. */
  audienceCreatedMs: 1_000,
  /** Then some users enter and leave it. */
  audienceChangedMs: 6_000,
  /** Then it is synced again. */
  audienceSyncedMs: 11_000,
  /** Then `partner` is switched on in the catalog file. */
  partnerOnMs: 20_000,
  /** When all that was asked for must have come to its end; about three times what it takes. */
  deadlineMs: 180_000,
} as const

/** The worker's retry ladder, in seconds. By default it is 1m,10m,1h,1h,1h, then 10m, for 4h. */
export const ladder = { waits: [3, 6, 12], last: 6, limit: 45 } as const

/** What `ads` asks for in `Retry-After`. */
export const retryAfterSeconds = 5

export const sourceIds = ['website', 'mobile-app', 'billing'] as const
export type SourceId = (typeof sourceIds)[number]

/** The source of audiences: what comes of it is no message of anybody. */
export const spaceId = 'marketing'

export const bigSpenders = { id: 'aud_1', name: 'Big Spenders', property: 'big_spenders' } as const

/** With it a client says which source it is. It is no secret: browsers have it too. */
export function writeKeyOf(id: SourceId): string {
  return `write-key-of-${id}`
}

export type Destination = {
  readonly id: string
  readonly sources: readonly (SourceId | typeof spaceId)[]
  /** What its server does, in a few words: a column of the table. */
  readonly server: string
  readonly isSigned: boolean
  readonly isPausedAtFirst: boolean
  /** What becomes of each message that it gets. */
  readonly end: 'delivered' | 'told_of_audience' | 'expired' | 'failed_for_good'
}

export const destinations = [
  {
    id: 'crm',
    sources: ['website', 'mobile-app', 'billing'],
    server: 'answers 200',
    isSigned: true,
    isPausedAtFirst: false,
    end: 'delivered',
  },
  {
    id: 'warehouse',
    sources: ['website', 'mobile-app', 'billing'],
    server: '2 URLs, one answers 500',
    isSigned: true,
    isPausedAtFirst: false,
    end: 'delivered',
  },
  {
    id: 'archive',
    sources: ['website'],
    server: 'no secret: unsigned',
    isSigned: false,
    isPausedAtFirst: false,
    end: 'delivered',
  },
  {
    id: 'mailer',
    sources: ['website'],
    server: '503 for 10 s, then 200',
    isSigned: true,
    isPausedAtFirst: false,
    end: 'delivered',
  },
  {
    id: 'ads',
    sources: ['mobile-app'],
    server: '429, Retry-After: 5',
    isSigned: true,
    isPausedAtFirst: false,
    end: 'delivered',
  },
  {
    id: 'partner',
    sources: ['mobile-app'],
    server: 'paused for 20 s',
    isSigned: true,
    isPausedAtFirst: true,
    end: 'delivered',
  },
  {
    id: 'campaigns',
    sources: [spaceId],
    server: 'hears of an audience',
    isSigned: true,
    isPausedAtFirst: false,
    end: 'told_of_audience',
  },
  {
    id: 'erp',
    sources: ['billing'],
    server: 'never answers',
    isSigned: true,
    isPausedAtFirst: false,
    end: 'expired',
  },
  {
    id: 'legacy',
    sources: ['billing'],
    server: 'self-signed certificate',
    isSigned: true,
    isPausedAtFirst: false,
    end: 'failed_for_good',
  },
  {
    id: 'oldsite',
    sources: ['billing'],
    server: 'answers 404',
    isSigned: true,
    isPausedAtFirst: false,
    end: 'failed_for_good',
  },
] as const satisfies readonly Destination[]

export type DestinationId = (typeof destinations)[number]['id']
