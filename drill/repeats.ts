import type { Change } from '../test/support/changing-group.ts'
import type { Delivery } from '../test/support/delivery-book.ts'
import { inFlightMs, isFault } from '../test/support/repeated-deliveries.ts'
import type { BackwardCommit } from './backward-commits.ts'
import type { Evidence, ParkedTry, Try } from './evidence.ts'
import { destinations } from './fleet.ts'
import type { Happened } from './play.ts'

/**
 * The causes for which an endpoint accepts a message more than once. The first cause that fits counts:
 * - `worker killed or stopped`: the worker had delivered, tried or parked the message.
 * - `answer not read`: the sender was gone when the endpoint answered, or it got no answer.
 * - `written twice`: the event or its retry is in Kafka twice, because its writer got no answer.
 * - `Kafka in trouble`: nothing could be committed.
 * - `network to the endpoint`: the drill disturbed this network.
 * - `unexplained`: none of these.
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
  /** The kill or stop of the worker, if that is the cause. */
  fault?: Change
}

/**
 * How long trouble of Kafka has effects after its end. A member may have been expelled from the group, and
 * then commits its settled records only when it is back.
 */
const afterKafkaMs = 15_000
const afterNetworkMs = 5_000
/**
 * The longest time between a delivery and the commit of its record. The record waits for its other deliveries
 * (5 s in a lane, 5 s for an attempt, 3 s for a retry topic), and then for the next commit (1 s). A fault of
 * a worker doesn't repeat older deliveries.
 */
const uncommittedMs = 15_000

/** Returns all messages that an endpoint has accepted more than once, each with the cause. */
export function findRepeats(evidence: Evidence): Repeat[] {
  const faults = evidence.changes.filter(isFault)
  const killedMs = new Map(
    faults.flatMap(({ kind, worker, toMs }) => (kind === 'kill' ? [[worker, toMs] as const] : [])),
  )
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
    // A worker may park a message before it is killed, without having sent it. The message is then delivered
    // twice, because the event and its retry are both in Kafka.
    const parkings =
      parked.get(key)?.flatMap(({ by }) => (by === undefined ? [] : [sentBy(by, killedMs)])) ?? []
    const tries = [...deliveries, ...(evidence.refused.get(key) ?? []), ...parkings]
    const lastMs = deliveries.at(-1)?.arrivedMs ?? 0
    const fault = faults.find(
      (one) => lastMs >= one.fromMs && mayRepeat(one, tries.filter(isBefore(lastMs)), ofKafka),
    )
    if (fault !== undefined) return [{ cause: 'worker killed or stopped', deliveries, fault }]
    return [{ cause: causeOf(key, first, deliveries), deliveries }]
  })
}

/** Returns a record with the latest time at which its worker can have sent it. It may have been under way. */
function sentBy({ worker, arrivedMs }: Try, killedMs: ReadonlyMap<string, number>): Try {
  return { worker, arrivedMs: Math.min(arrivedMs, killedMs.get(worker) ?? Infinity) }
}

/**
 * Returns, for each kill or stop of a worker, the number of messages that it may have repeated. These are the
 * messages that the worker had delivered and may not have committed.
 */
export function countUncommitted({ changes, happened, deliveries }: Evidence): number[] {
  const ofKafka = happened.filter(isOfKafka)
  return changes.filter(isFault).map((fault) => {
    const sinceMs = uncommittedSince(fault, ofKafka)
    return [...deliveries.values()].filter((all) => all.some((one) => isOf(fault, one, sinceMs))).length
  })
}

/**
 * Returns true if the worker of the fault had delivered, tried or parked the message shortly before, and may
 * not have committed this. Refused attempts count too, because the message and its retry are then both in
 * Kafka.
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

/**
 * Returns the time since which the worker of the fault may have committed nothing, in epoch milliseconds. The
 * time goes back further if Kafka was in trouble, because nothing can be committed then.
 */
function uncommittedSince({ fromMs }: Change, ofKafka: readonly Happened[]): number {
  let sinceMs = fromMs - uncommittedMs
  for (const span of ofKafka.toSorted((a, b) => b.fromMs - a.fromMs)) {
    if (span.fromMs <= fromMs && span.toMs + afterKafkaMs >= sinceMs)
      sinceMs = Math.min(sinceMs, span.fromMs - uncommittedMs)
  }
  return sinceMs
}

/** Returns the committed offsets that went back while Kafka was well. */
export function findBackward({ backwardCommits, happened }: Evidence): BackwardCommit[] {
  const ofKafka = happened.filter(isOfKafka)
  return backwardCommits.filter(({ seenMs, lostMs }) => !overlaps(ofKafka, seenMs, lostMs, afterKafkaMs))
}

/**
 * Returns true if the sender got no answer to its last attempt. The endpoint may have accepted that attempt,
 * and the sender tries again.
 */
function isUnread({ outcome }: ParkedTry): boolean {
  return /^(timeout|connection)/.test(outcome)
}

/** Returns true for a fault after which it may be uncertain whether commits and records were written. */
export function isOfKafka({ lane }: Happened): boolean {
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
