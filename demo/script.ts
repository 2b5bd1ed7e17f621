/** The script of the demo: its destinations, the behaviour of their servers, and the times of all events. */

/** Times of the demo's events, in milliseconds from the first message. */
export const times = {
  /** The end of the upstream services' messages. */
  productionMs: 12_000,
  /** The time at which the server of `mailer` stops answering 503. */
  mailerBackMs: 10_000,
  /** The time of the first sync, which creates the audience with all of its members. */
  audienceCreatedMs: 1_000,
  /** The time at which some users enter and leave the audience. */
  audienceChangedMs: 6_000,
  /** The time of the audience's second sync. */
  audienceSyncedMs: 11_000,
  /** The time at which `partner` is switched on by the admin API. */
  partnerOnMs: 20_000,
  /** The time at which every message must be delivered or dead. Usually a third of this time is enough. */
  deadlineMs: 180_000,
} as const

/** The worker's retry ladder, in seconds. By default it is 1m,10m,1h,1h,1h, then 10m, for 4h. */
export const ladder = { waits: [3, 6, 12], last: 6, limit: 45 } as const

/** The `Retry-After` of the server of `ads`, in seconds. */
export const retryAfterSeconds = 5

export const sourceIds = ['website', 'mobile-app', 'billing'] as const
export type SourceId = (typeof sourceIds)[number]

/**
 * The id of the space, the source of audiences. Its Identifies come from Sluice, not from an upstream
 * service.
 */
export const spaceId = 'marketing'

export const bigSpenders = { id: 'aud_1', name: 'Big Spenders', property: 'big_spenders' } as const

/**
 * Returns the write key by which a client names its source. The key is no secret, because browsers have it
 * too.
 */
export function writeKeyOf(id: SourceId): string {
  return `write-key-of-${id}`
}

export type Destination = {
  readonly id: string
  readonly sources: readonly (SourceId | typeof spaceId)[]
  /** The behaviour of the destination's server in a few words, for a column of the table. */
  readonly server: string
  readonly isSigned: boolean
  readonly isPausedAtFirst: boolean
  /**
   * The expected end of each message for the destination. `told_of_audience`: an Identify is delivered for
   * each change of membership. `expired` and `failed_for_good`: the message becomes a dead letter with this
   * reason.
   */
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
