import { createHash } from 'node:crypto'
import type { DeadReason } from '../message/dead-letter-reasons.ts'
import type { RuleLimit } from '../pipeline/rule-time.ts'
import { deadFromMs } from './pause-record.ts'

/**
 * A notice to a customer about a destination. Times are epoch milliseconds. A notice that was decided never
 * changes. So if another process sends it again, it has the same `messageId`.
 */
export type Notice =
  /**
   * `times`: how often the hook has begun to fail since its previous `failing` notice, including this time.
   */
  | (OfHook & { readonly kind: 'failing'; readonly lastOutcome: string; readonly times: number })
  | (OfHook & { readonly kind: 'recovered' })
  /** `sinceMs`: the time since which the hook has refused everything, with an answer such as 401 or 404. */
  | (OfHook & { readonly kind: 'refusing'; readonly lastOutcome: string })
  | (Counted & { readonly kind: 'paced' })
  | (Counted & { readonly kind: 'dead_letters' })
  | {
      readonly kind: 'needs_backfill'
      readonly destinationId: string
      readonly spaceId: string
      readonly atMs: number
    }
  /** `endsAtMs`: the time from which the destination's `sharedSecret` isn't used for signatures any more. */
  | {
      readonly kind: 'secret_ending'
      readonly destinationId: string
      readonly endsAtMs: number
      readonly atMs: number
    }
  /**
   * An automatic pause (`notices.autoPause`, or 410). `sinceMs`: the time since which all URLs of the
   * destination have failed, or the first of them was gone.
   */
  | {
      readonly kind: 'auto_paused'
      readonly destinationId: string
      readonly sinceMs: number
      readonly atMs: number
      readonly lastOutcome: string
    }
  /**
   * The end of an automatic pause. `sinceMs`: the time when the pause began. `cause`: what ended the pause, a
   * request (`asked`) or an edit of the catalog (`catalog`).
   */
  | {
      readonly kind: 'resumed'
      readonly destinationId: string
      readonly sinceMs: number
      readonly atMs: number
      readonly cause: 'asked' | 'catalog'
    }

type OfHook = {
  readonly destinationId: string
  readonly hookId: string
  /** The time when the hook began to fail. */
  readonly sinceMs: number
  readonly atMs: number
}

/** `counts`: the counts since `sinceMs`, by reason. */
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
  'refusing',
  'paced',
  'dead_letters',
  'needs_backfill',
  'secret_ending',
  'auto_paused',
  'resumed',
]

/** `labels`: those by which somebody finds out to whom the destination belongs. */
export type AboutDestination = {
  readonly name: string
  readonly labels?: Readonly<Record<string, string>> | undefined
}

/**
 * A notice as a Segment message for the topic `events`. `key` is the key of its record. All notices about a
 * destination have the same key, so they are in one partition.
 */
export type NoticeMessage = { readonly messageId: string; readonly key: string; readonly text: string }

/**
 * Returns the subject of a notice, for example a hook. Within `notices.window`, at most one notice of a kind
 * is made about the same subject.
 */
export function subjectOf(notice: Notice): string {
  switch (notice.kind) {
    case 'failing':
    case 'recovered':
    case 'refusing':
      return notice.hookId
    case 'needs_backfill':
      return notice.spaceId
    case 'paced':
    case 'dead_letters':
    case 'secret_ending':
    case 'auto_paused':
    case 'resumed':
      return ''
  }
}

/**
 * Returns the message of a notice. `aboutOf` returns the name and the labels of a destination in the catalog.
 * The same notice with the same name and labels always gives the same text.
 */
export function messageOf(
  notice: Notice,
  aboutOf: (destinationId: string) => AboutDestination,
): NoticeMessage {
  const { destinationId, atMs } = notice
  const messageId = idOf(notice)
  const { name, labels = {} } = aboutOf(destinationId)
  const message = {
    type: 'track',
    messageId,
    anonymousId: destinationId,
    event: eventOf(notice.kind),
    timestamp: timeOf(atMs),
    properties: {
      destination: destinationId,
      destinationName: name,
      ...(Object.keys(labels).length > 0 && { labels }),
      ...propertiesOf(notice),
      advice: adviceOf(notice),
    },
  }
  return { messageId, key: destinationId, text: JSON.stringify(message) }
}

export function eventOf(kind: NoticeKind): string {
  switch (kind) {
    case 'failing':
      return 'Endpoint Failing'
    case 'recovered':
      return 'Endpoint Recovered'
    case 'refusing':
      return 'Endpoint Refusing'
    case 'paced':
      return 'Deliveries Paced'
    case 'dead_letters':
      return 'Dead Letters Exceeded'
    case 'needs_backfill':
      return 'Backfill Needed'
    case 'secret_ending':
      return 'Secret Ending'
    case 'auto_paused':
      return 'Destination Paused'
    case 'resumed':
      return 'Destination Resumed'
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
    case 'refusing':
      return { hook: notice.hookId, since: timeOf(notice.sinceMs), lastOutcome: notice.lastOutcome }
    case 'paced':
    case 'dead_letters': {
      const { counts, sinceMs, atMs } = notice
      return { count: sumOf(counts), reasons: counts, since: timeOf(sinceMs), until: timeOf(atMs) }
    }
    case 'needs_backfill':
      return { space: notice.spaceId }
    case 'secret_ending':
      return { endsAt: timeOf(notice.endsAtMs) }
    case 'auto_paused':
      return { since: timeOf(notice.sinceMs), lastOutcome: notice.lastOutcome }
    case 'resumed': {
      const { sinceMs, atMs, cause } = notice
      const pausedForSeconds = Math.round(Math.max(0, atMs - sinceMs) / 1_000)
      return { since: timeOf(sinceMs), until: timeOf(atMs), pausedForSeconds, cause }
    }
  }
}

function adviceOf(notice: Notice): string {
  const { destinationId } = notice
  switch (notice.kind) {
    case 'failing':
      return 'Mend the endpoint: it must answer 2xx in time. Until then its messages are tried again by the retry ladder, and become dead letters after retry.limit (4h by default).'
    case 'recovered':
      return `Nothing is to be done for what waits: it is delivered. What had become a dead letter meanwhile can be sent again: sluice replay dead-letters --destination ${destinationId} --reason expired`
    case 'refusing':
      return `The endpoint has accepted nothing: each message becomes a dead letter at once. See why with: sluice destinations test ${destinationId}. Correct its URL, headers or secret, or the endpoint; then send them again: sluice replay dead-letters --destination ${destinationId} --reason failed_for_good`
    case 'paced':
      if ((notice.counts[rulesReasons.own] ?? 0) > 0)
        return `The conditions and mappings of the destination take more time than delivery.maxRuleTime: its messages wait, and come late. ${cheaperRules}`
      if ((notice.counts[rulesReasons.shared] ?? 0) > 0)
        return `The conditions and mappings of all destinations together want more time than a process has for them, and those of this destination take more than its share: its messages wait, and come late. ${cheaperRules}`
      return "The endpoint takes messages more slowly than they come, or asks for pauses: they wait in its queue. Sluice makes as many requests at once as the endpoint was seen to take. Let it answer at once and work afterwards, or raise the destination's rateLimit. Raise maxInFlight only for an endpoint that takes more than 64 at once."
    case 'dead_letters':
      if ((notice.counts[mappingFailed] ?? 0) > 0)
        return `A mapping of the destination makes no request of some messages. See why with: sluice log search --destination ${destinationId} --failed. Correct it; then send them: sluice replay dead-letters --destination ${destinationId} --reason ${mappingFailed}`
      if ((notice.counts[filterFailed] ?? 0) > 0)
        return `The condition (filter.condition) of the destination can't be evaluated for some messages, which were not sent. See why with: sluice log search --destination ${destinationId} --failed. Correct it; then send what passes: sluice replay dead-letters --destination ${destinationId} --reason ${filterFailed}`
      return `See why with: sluice log search --destination ${destinationId} --failed. Mend that, then send them again: sluice replay dead-letters --destination ${destinationId}`
    case 'needs_backfill':
      return `Once the destination works, send it the present values: sluice audience backfill --space ${notice.spaceId} --destination ${destinationId} --with-left`
    case 'secret_ending':
      return 'Let each receiver verify with the new secret too (nextSharedSecret in the catalog): from endsAt on, Sluice signs with that one alone. Afterwards drop the old one at the receivers, write the new one as sharedSecret, and remove nextSharedSecret and sharedSecretEndsAt.'
    case 'auto_paused':
      return `Nothing is sent any more, and its messages wait. Mend the endpoint; then: sluice destinations resume ${destinationId}, which delivers them. With notices.whileAutoPaused=dead-letter they are dead letters; then send them: sluice replay dead-letters --destination ${destinationId} --reason auto_paused`
    case 'resumed':
      return `What waits is delivered, and new messages are sent again. If messages became dead letters meanwhile (notices.whileAutoPaused=dead-letter), send them: sluice replay dead-letters --destination ${destinationId} --reason auto_paused --from ${timeOf(deadFromMs(notice.sinceMs))}`
  }
}

const filterFailed: DeadReason = 'filter_failed'
const mappingFailed: DeadReason = 'mapping_failed'

const cheaperRules =
  'Filter by types and events first, which costs nothing; read fewer fields of large messages, and no long lists.'

/** The reasons for which deliveries wait whose destination has conditions and mappings that take too long. */
export const rulesReasons: Readonly<Record<RuleLimit, string>> = { own: 'rules', shared: 'rules_shared' }

/** The reasons of which one is told at once, because the customer's own rules fail or take too long. */
export const urgentReasons: readonly string[] = [filterFailed, mappingFailed, ...Object.values(rulesReasons)]

/**
 * Returns the `messageId` of a notice. It depends only on what the notice reports, so that receivers and
 * Sluice itself recognize a repeat.
 */
function idOf(notice: Notice): string {
  const { kind, destinationId } = notice
  const what = JSON.stringify([kind, destinationId, subjectOf(notice), episodeOf(notice)])
  return `notice-${createHash('sha256').update(what).digest('hex').slice(0, 32)}`
}

/** Returns a time that is different for any two notices of the same kind about the same subject. */
function episodeOf(notice: Notice): number {
  switch (notice.kind) {
    case 'failing':
    case 'recovered':
    case 'refusing':
    case 'resumed':
      return notice.sinceMs
    case 'secret_ending':
      return notice.endsAtMs
    case 'paced':
    case 'dead_letters':
    case 'needs_backfill':
    case 'auto_paused':
      return notice.atMs
  }
}

export function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}
