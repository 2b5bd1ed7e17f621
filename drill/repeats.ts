import type { Change } from '../test/support/changing-group.ts'
import type { Delivery } from '../test/support/delivery-book.ts'
import { inFlightMs, isFault } from '../test/support/repeated-deliveries.ts'
import type { BackwardCommit } from './backward-commits.ts'
import type { Evidence, ParkedTry, Try } from './evidence.ts'
import { destinations } from './fleet.ts'
import type { Happened } from './play.ts'

/**
 * Why a message was taken more than once: a worker that had delivered, tried or parked it was killed or stopped; the sender was gone when it was
 * answered; it is twice in Kafka (the event or its retry), since who wrote it got no answer; Kafka was in trouble, so that nothing could be committed; the network to
 * the endpoint was; nothing of these.
 */
export const causes = [
  'worker killed or stopped',
  'answer not read',
  'written twice',
  'Kafka in trouble',
  'network to the endpoint',
  'unexplained',
] as const
export type Cause = (typeof causes)[number]

export type Repeat = {
  cause: Cause
  deliveries: readonly Delivery[]
  /** Of a worker that had tried it, where that is the cause. */
  fault?: Change
}

/** After trouble of Kafka a member may be expelled, and commits what it has settled when it is back. */
const afterKafkaMs = 15_000
const afterNetworkMs = 5_000
/**
 * So long what a worker has delivered may not be committed yet: its record waits for its other deliveries (5 s in a lane, 5 s an attempt, 3 s for a retry topic),
 * and then for the next commit (1 s). What is older is repeated by no fault of a worker.
 */
const uncommittedMs = 15_000

/** All messages that an endpoint has taken more than once, with why. */
export function findRepeats(evidence: Evidence): Repeat[] {
  const faults = evidence.changes.filter(isFault)
  const twice = repeated(evidence.written)
  const parkedTwice = new Set(
    [...repeated(evidence.parked.map(({ key, state }) => `${key} ${state}`))].map((one) => one.split(' ')[0]),
  )
  const parked = Map.groupBy(evidence.parked, ({ key }) => key)
  const unread = new Set(evidence.parked.filter(isUnread).map(({ key }) => key))
  const ofKafka = evidence.happened.filter(isOfKafka)
  const ofEndpoint = evidence.happened.filter(({ fault }) => fault.kind === 'trouble to an endpoint')
  const proxied = new Set(destinations.filter(({ isProxied }) => isProxied).map(({ id }) => id))
  const causeOf = (key: string, first: Delivery, deliveries: readonly Delivery[]): Cause => {
    if (deliveries.slice(0, -1).some(({ isAnswered }) => !isAnswered) || unread.has(key))
      return 'answer not read'
    if (twice.has(first.messageId) || parkedTwice.has(key)) return 'written twice'
    if (isWithin(deliveries, ofKafka, afterKafkaMs)) return 'Kafka in trouble'
    const isOverNetwork = proxied.has(first.destination) && isWithin(deliveries, ofEndpoint, afterNetworkMs)
    return isOverNetwork ? 'network to the endpoint' : 'unexplained'
  }
  return [...evidence.deliveries].flatMap(([key, deliveries]): Repeat[] => {
    const [first] = deliveries
    if (first === undefined || deliveries.length < 2) return []
    // What was parked before a kill is delivered twice as well, though nothing was sent: the event and its retry are both in Kafka.
    const parkings = parked.get(key)?.flatMap(({ by }) => by ?? []) ?? []
    const tries = [...deliveries, ...(evidence.refused.get(key) ?? []), ...parkings]
    const lastMs = deliveries.at(-1)?.arrivedMs ?? 0
    const fault = faults.find(
      (one) => lastMs >= one.fromMs && mayRepeat(one, tries.filter(isBefore(lastMs)), ofKafka),
    )
    if (fault !== undefined) return [{ cause: 'worker killed or stopped', deliveries, fault }]
    return [{ cause: causeOf(key, first, deliveries), deliveries }]
  })
}

/** What each kill or stop of a worker may have repeated: messages that it had delivered and may not have committed. */
export function countUncommitted({ changes, happened, deliveries }: Evidence): number[] {
  const ofKafka = happened.filter(isOfKafka)
  return changes.filter(isFault).map((fault) => {
    const sinceMs = uncommittedSince(fault, ofKafka)
    return [...deliveries.values()].filter((all) => all.some((one) => isOf(fault, one, sinceMs))).length
  })
}

/**
 * Whether that worker had tried or parked it a short time before, and nobody had to know. Also where that was refused: then the message
 * and its retry are both in Kafka.
 */
function mayRepeat(fault: Change, tries: readonly Try[], ofKafka: readonly Happened[]): boolean {
  const sinceMs = uncommittedSince(fault, ofKafka)
  return tries.some((one) => isOf(fault, one, sinceMs))
}

function isBefore(ms: number): (one: Try) => boolean {
  return ({ arrivedMs }) => arrivedMs < ms
}

function isOf(fault: Change, { worker, arrivedMs }: Try, sinceMs: number): boolean {
  return worker === fault.worker && arrivedMs >= sinceMs && arrivedMs <= fault.toMs + inFlightMs
}

/** While Kafka is in trouble nothing can be committed. */
function uncommittedSince({ fromMs }: Change, ofKafka: readonly Happened[]): number {
  let sinceMs = fromMs - uncommittedMs
  for (const span of ofKafka.toSorted((a, b) => b.fromMs - a.fromMs)) {
    if (span.fromMs <= fromMs && span.toMs + afterKafkaMs >= sinceMs)
      sinceMs = Math.min(sinceMs, span.fromMs - uncommittedMs)
  }
  return sinceMs
}

/** Of the group's committed positions, those that went back though Kafka was well. */
export function findBackward({ backwardCommits, happened }: Evidence): BackwardCommit[] {
  const ofKafka = happened.filter(isOfKafka)
  return backwardCommits.filter(({ seenMs, lostMs }) => !overlaps(ofKafka, seenMs, lostMs, afterKafkaMs))
}

/** Whether the sender says that it had no answer, so that it tried again what the endpoint had taken. */
function isUnread({ outcome }: ParkedTry): boolean {
  return /^(timeout|connection)/.test(outcome)
}

/** Whether it is one after which commits and produced records may be uncertain. */
function isOfKafka({ lane }: Happened): boolean {
  return lane === 'brokers' || lane === 'kafka network'
}

function isWithin(deliveries: readonly Delivery[], spans: readonly Happened[], afterMs: number): boolean {
  return overlaps(spans, deliveries[0]?.arrivedMs ?? 0, deliveries.at(-1)?.arrivedMs ?? 0, afterMs)
}

function overlaps(spans: readonly Happened[], fromMs: number, toMs: number, afterMs: number): boolean {
  return spans.some((span) => fromMs <= span.toMs + afterMs && toMs >= span.fromMs)
}

function repeated(texts: readonly string[]): Set<string> {
  const seen = new Set<string>()
  const twice = new Set<string>()
  for (const id of texts) (seen.has(id) ? twice : seen).add(id)
  return twice
}
