import { type Scene, setScene, unhurried } from '../e2e/scene.ts'
import { type Change, ChangingGroup } from './changing-group.ts'
import { type Delivery, type DeliveryBook, keyOf, startDeliveryBook } from './delivery-book.ts'
import { startSteadyProducer } from './steady-producer.ts'
import { createTrust } from './trust.ts'
import { until } from './until.ts'
import { startSluice } from './worker-process.ts'

const readyMs = 90_000
export const perSecond = 250
export const sessionTimeoutMs = 6_000
export const commitIntervalMs = 1_000
/** There are always requests in flight: about 10 for the one, 30 for the other. */
const latencies = { crm: { least: 20, most: 60 }, mail: { least: 50, most: 200 } }
export const destinations = Object.keys(latencies)

export type Report = {
  /** `destination/messageId` of what was never answered with 200. */
  gaps: string[]
  /** All deliveries of a message to a destination, where there is more than one. */
  repeats: (readonly Delivery[])[]
  changes: readonly Change[]
  deliveries: number
  produced: number
  /** The longest time in which nothing came to one of the destinations, in milliseconds. */
  longestPauseMs: number
  /** When the load began, in epoch milliseconds. */
  startedMs: number
  /** What the workers have logged of the group. */
  log: readonly { ms: number; text: string }[]
}

/** Changes a group of workers while messages are produced, and waits until all is settled. */
export async function underLoad({
  program,
  workers = 2,
  variablesOf = () => ({}),
  change,
}: {
  /** What the first workers run, where it isn't this one. */
  program?: string
  /** How many there are at first. */
  workers?: number
  /** Settings of the worker of that name. */
  variablesOf?: (name: string) => Record<string, string>
  change: (group: ChangingGroup, startedMs: number) => Promise<void>
}): Promise<Report> {
  const trust = createTrust('https')
  const book = await startDeliveryBook(latencies, trust.secured)
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: destinations.map((id) => ({
        id,
        sources: ['shop'],
        maxInFlight: 200,
        // oxlint-disable-next-line no-template-curly-in-string -- a variable of the catalog
        hooks: [{ url: book.url(id), headers: { 'X-Worker': '${CATALOG_WORKER}' } }],
      })),
    },
    variables: {
      ...unhurried,
      ...trust.variables,
      SLUICE_KAFKA_SESSION_TIMEOUT: `${sessionTimeoutMs}ms`,
      SLUICE_KAFKA_COMMIT_INTERVAL: `${commitIntervalMs}ms`,
      SLUICE_RETRY_LADDER: '1s',
      SLUICE_RETRY_THEN: '1s',
      SLUICE_LOG_ATTEMPTS: 'false',
      // A request that a busy machine makes late would be tried again, which is no repeat of the group's.
      SLUICE_DELIVERY_TIMEOUT: '30s',
    },
  })
  const group = new ChangingGroup({
    start: (name, other) =>
      startSluice(
        { ...scene.variables, ...variablesOf(name), CATALOG_WORKER: name },
        { readyMs, ...(other !== undefined && { program: other }) },
      ),
  })
  try {
    await Promise.all(Array.from({ length: workers }, () => group.join(program)))
    const producer = await startSteadyProducer({
      topic: `${scene.prefix}events`,
      sourceId: 'shop',
      perSecond,
    })
    const startedMs = Date.now()
    try {
      await change(group, startedMs)
    } finally {
      await producer.stop()
    }
    await group.thaw()
    await allSettled(scene)
    await group.close()
    return { ...compare(producer.ids, book), changes: group.changes, startedMs, log: group.log() }
  } finally {
    await group.destroy()
    scene.close()
    await book.stop()
    trust.remove()
  }
}

async function allSettled(scene: Scene): Promise<void> {
  await until('all is committed', async () => (await scene.lag()) === 0, {
    timeoutMs: 120_000,
    everyMs: 250,
  })
}

function compare(
  ids: readonly string[],
  book: DeliveryBook,
): Pick<Report, 'gaps' | 'repeats' | 'deliveries' | 'produced' | 'longestPauseMs'> {
  const gaps: string[] = []
  for (const destination of destinations) {
    for (const id of ids) {
      const key = keyOf(destination, id)
      if (book.deliveries.get(key)?.some(({ isAnswered }) => isAnswered) !== true) gaps.push(key)
    }
  }
  const repeats = [...book.deliveries.values()].filter(({ length }) => length > 1)
  const longestPauseMs = Math.max(...destinations.map((destination) => longestPause(destination, book)))
  return { gaps, repeats, deliveries: book.requests, produced: ids.length, longestPauseMs }
}

function longestPause(destination: string, { deliveries }: DeliveryBook): number {
  const times = [...deliveries.values()]
    .flat()
    .filter((delivery) => delivery.destination === destination)
    .map(({ arrivedMs }) => arrivedMs)
    .sort((a, b) => a - b)
  return times.reduce((longest, ms, index) => Math.max(longest, ms - (times[index - 1] ?? ms)), 0)
}
