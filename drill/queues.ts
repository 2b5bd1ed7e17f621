import { inFlightMs } from '../test/support/repeated-deliveries.ts'
import type { Evidence } from './evidence.ts'
import { destinations } from './fleet.ts'
import { isOfKafka, type Repeat } from './repeats.ts'
import { readSaleId } from './straight.ts'

/** A message that arrived after later ones of its unit. */
export type Overtaken = { key: string; by: number }

/** The most later messages of a unit that may arrive before a message, because their requests were in flight. */
const mostInFlight = 5
/** How long a change of the group, or trouble of Kafka, may have effects on the order, in milliseconds. */
const afterMs = 15_000

/**
 * Returns the order in which the destinations with a rate got the messages of each burst, unit by unit.
 * `checked`: the number of messages that arrived while no worker came or went and Kafka was well. Only their
 * order is promised.
 */
export function findOvertaken({ acknowledged, deliveries, changes, happened }: Evidence): {
  overtaken: readonly Overtaken[]
  checked: number
} {
  const troubled = [...changes, ...happened.filter(isOfKafka)]
  const isCalm = (fromMs: number, toMs: number): boolean =>
    !troubled.some((span) => span.fromMs <= toMs && span.toMs + afterMs >= fromMs)
  const sales = acknowledged.filter(({ source }) => source === 'sale')
  const overtaken: Overtaken[] = []
  let checked = 0
  for (const { id } of destinations.filter(({ perSecond }) => perSecond !== undefined)) {
    const arrived = sales.flatMap((sent) => {
      const key = `${id}/${sent.id}`
      const first = deliveries.get(key)?.[0]
      return first === undefined ? [] : [{ key, ...sent, ...readSaleId(sent.id), atMs: first.arrivedMs }]
    })
    for (const burst of Map.groupBy(arrived, ({ sentMs, unit }) => `${sentMs}/${unit}`).values()) {
      const lastMs = Math.max(...burst.map(({ atMs }) => atMs))
      if (!isCalm(burst[0]?.sentMs ?? 0, lastMs)) continue
      checked += burst.length
      for (const { key, number, atMs } of burst) {
        const by = burst.filter((other) => other.number > number && other.atMs < atMs).length
        if (by > mostInFlight) overtaken.push({ key, by })
      }
    }
  }
  return { overtaken, checked }
}

/**
 * Returns the kills of workers after which a destination with a rate got more repeats than it takes in a
 * second, each as a text. Leaves out kills while Kafka was in trouble, because nothing can be marked then.
 */
export function findManyRepeats({ happened }: Evidence, repeats: readonly Repeat[]): string[] {
  const ofKafka = happened.filter(isOfKafka)
  const kills = repeats.filter(
    ({ fault }) =>
      fault?.kind === 'kill' &&
      !ofKafka.some(
        ({ fromMs, toMs }) => fromMs <= fault.toMs + inFlightMs && toMs + afterMs >= fault.fromMs,
      ),
  )
  return destinations.flatMap(({ id, perSecond }) => {
    if (perSecond === undefined) return []
    const own = kills.filter(({ deliveries }) => deliveries[0]?.destination === id)
    return [...Map.groupBy(own, ({ fault }) => fault)].flatMap(([fault, all]) =>
      all.length > perSecond ? [`${id}: ${all.length} after the kill of ${fault?.worker}`] : [],
    )
  })
}
