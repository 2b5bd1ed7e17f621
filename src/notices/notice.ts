import { createHash } from 'node:crypto'

/**
 * What a customer is told of a destination. Times are epoch milliseconds. One notice stays the same object of
 * plain data from the moment that it is decided: whoever sends it again sends the same `messageId`.
 */
export type Notice =
  /** `times`: how often it has begun to fail since the notice before, this one included. */
  | (OfHook & { readonly kind: 'failing'; readonly lastOutcome: string; readonly times: number })
  | (OfHook & { readonly kind: 'recovered' })
  | (Counted & { readonly kind: 'paced' })
  | (Counted & { readonly kind: 'dead_letters' })
  | {
      readonly kind: 'needs_backfill'
      readonly destinationId: string
      readonly spaceId: string
      readonly atMs: number
    }

type OfHook = {
  readonly destinationId: string
  readonly hookId: string
  /** Since when it fails, or has failed. */
  readonly sinceMs: number
  readonly atMs: number
}

/** `counts`: how many of which reason since `sinceMs`. */
type Counted = {
  readonly destinationId: string
  readonly sinceMs: number
  readonly atMs: number
  readonly counts: Readonly<Record<string, number>>
}

export type NoticeKind = Notice['kind']

export const noticeKinds: readonly NoticeKind[] = [
  'failing',
  'recovered',
  'paced',
  'dead_letters',
  'needs_backfill',
]

/**
 * A Segment message, as it is written to `events`. `key` is that of its record: notices of a destination are
 * in one partition.
 */
export type NoticeMessage = { readonly messageId: string; readonly key: string; readonly text: string }

/** What a notice is about: at most one of a kind is told of it in a time. */
export function subjectOf(notice: Notice): string {
  switch (notice.kind) {
    case 'failing':
    case 'recovered':
      return notice.hookId
    case 'needs_backfill':
      return notice.spaceId
    case 'paced':
    case 'dead_letters':
      return ''
  }
}

/** The same notice gives the same bytes. `nameOf`: what the catalog calls a destination. */
export function messageOf(notice: Notice, nameOf: (destinationId: string) => string): NoticeMessage {
  const { destinationId, atMs } = notice
  const messageId = idOf(notice)
  const message = {
    type: 'track',
    messageId,
    anonymousId: destinationId,
    event: eventOf(notice.kind),
    timestamp: timeOf(atMs),
    properties: {
      destination: destinationId,
      destinationName: nameOf(destinationId),
      ...propertiesOf(notice),
      advice: adviceOf(notice),
    },
  }
  return { messageId, key: destinationId, text: JSON.stringify(message) }
}

/** The `event` of such a message. */
export function eventOf(kind: NoticeKind): string {
  switch (kind) {
    case 'failing':
      return 'Endpoint Failing'
    case 'recovered':
      return 'Endpoint Recovered'
    case 'paced':
      return 'Deliveries Paced'
    case 'dead_letters':
      return 'Dead Letters Exceeded'
    case 'needs_backfill':
      return 'Backfill Needed'
  }
}

function propertiesOf(notice: Notice): object {
  switch (notice.kind) {
    case 'failing': {
      const { hookId, sinceMs, lastOutcome, times } = notice
      return { hook: hookId, since: timeOf(sinceMs), lastOutcome, times }
    }
    case 'recovered': {
      const { hookId, sinceMs, atMs } = notice
      const failedForSeconds = Math.round(Math.max(0, atMs - sinceMs) / 1_000)
      return { hook: hookId, since: timeOf(sinceMs), until: timeOf(atMs), failedForSeconds }
    }
    case 'paced':
    case 'dead_letters': {
      const { counts, sinceMs, atMs } = notice
      return { count: sumOf(counts), reasons: counts, since: timeOf(sinceMs), until: timeOf(atMs) }
    }
    case 'needs_backfill':
      return { space: notice.spaceId }
  }
}

function adviceOf(notice: Notice): string {
  const { destinationId } = notice
  switch (notice.kind) {
    case 'failing':
      return 'Mend the endpoint: it must answer 2xx in time. Until then its messages are tried again by the retry ladder, and become dead letters after retry.limit (4h by default).'
    case 'recovered':
      return `Nothing is to be done for what waits: it is delivered. What had become a dead letter meanwhile can be sent again: sluice replay dead-letters --destination ${destinationId} --reason expired`
    case 'paced':
      return "The endpoint takes messages more slowly than they come, or asks for pauses: they wait on the retry ladder. Let it answer at once and work afterwards, or raise the destination's rateLimit or maxInFlight."
    case 'dead_letters':
      return `See why with: sluice log search --destination ${destinationId} --failed. Mend that, then send them again: sluice replay dead-letters --destination ${destinationId}`
    case 'needs_backfill':
      return `Once the destination works, send it the present values: sluice audience backfill --space ${notice.spaceId} --destination ${destinationId} --with-left`
  }
}

/** Depends on what is told, and on nothing else: receivers, and Sluice itself, know a repeat by it. */
function idOf(notice: Notice): string {
  const { kind, destinationId, atMs } = notice
  const episodeMs = kind === 'failing' || kind === 'recovered' ? notice.sinceMs : atMs
  const what = JSON.stringify([kind, destinationId, subjectOf(notice), episodeMs])
  return `notice-${createHash('sha256').update(what).digest('hex').slice(0, 32)}`
}

export function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}
