import { type Delivery, keyOf } from '../test/support/delivery-book.ts'
import { faultsOf, isFault } from '../test/support/repeated-deliveries.ts'
import type { Evidence, ParkedTry } from './evidence.ts'
import { destinations } from './fleet.ts'
import type { Happened } from './play.ts'

/**
 * Why a message was taken more than once: a worker that had delivered it was killed or stopped; the sender was gone when it was
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

export type Repeat = { cause: Cause; deliveries: readonly Delivery[] }

/** After trouble of Kafka a member may be expelled, and commits what it has settled when it is back. */
const afterKafkaMs = 15_000
const afterNetworkMs = 5_000

/** All messages that an endpoint has taken more than once, with why. */
export function findRepeats(evidence: Evidence): Repeat[] {
  const faults = evidence.changes.filter(isFault)
  const twice = repeated(evidence.written)
  const parkedTwice = new Set(
    [...repeated(evidence.parked.map(({ key, state }) => `${key} ${state}`))].map((one) => one.split(' ')[0]),
  )
  const unread = new Set(evidence.parked.filter(isUnread).map(({ key }) => key))
  const spans = {
    kafka: evidence.happened.filter(isOfKafka),
    endpoint: evidence.happened.filter(({ fault }) => fault.kind === 'trouble to an endpoint'),
  }
  const proxied = new Set(destinations.filter(({ isProxied }) => isProxied).map(({ id }) => id))
  const causeOf = (deliveries: readonly Delivery[]): Cause => {
    const [first] = deliveries
    if (faultsOf(deliveries, faults).length > 0) return 'worker killed or stopped'
    if (deliveries.slice(0, -1).some(({ isAnswered }) => !isAnswered)) return 'answer not read'
    if (first !== undefined && unread.has(keyOf(first.destination, first.messageId))) return 'answer not read'
    if (first !== undefined && twice.has(first.messageId)) return 'written twice'
    if (first !== undefined && parkedTwice.has(keyOf(first.destination, first.messageId)))
      return 'written twice'
    if (isWithin(deliveries, spans.kafka, afterKafkaMs)) return 'Kafka in trouble'
    if (first !== undefined && proxied.has(first.destination))
      if (isWithin(deliveries, spans.endpoint, afterNetworkMs)) return 'network to the endpoint'
    return 'unexplained'
  }
  return [...evidence.deliveries.values()]
    .filter(({ length }) => length > 1)
    .map((deliveries) => ({ cause: causeOf(deliveries), deliveries }))
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
  const fromMs = deliveries[0]?.arrivedMs ?? 0
  const toMs = deliveries.at(-1)?.arrivedMs ?? 0
  return spans.some((span) => fromMs <= span.toMs + afterMs && toMs >= span.fromMs)
}

function repeated(texts: readonly string[]): Set<string> {
  const seen = new Set<string>()
  const twice = new Set<string>()
  for (const id of texts) (seen.has(id) ? twice : seen).add(id)
  return twice
}
