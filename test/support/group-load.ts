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
/**
 * The times that destinations take to answer, in milliseconds. There are always requests in flight: about 10
 * for `crm`, and about 30 for `mail`.
 */
const latencies = { crm: { least: 20, most: 60 }, mail: { least: 50, most: 200 } }
export const destinations = Object.keys(latencies)

export type Report = {
  /** The `destination/messageId` of each delivery that was never answered with 200. */
  gaps: string[]
  /** For each message that came to a destination more than once, all of these deliveries. */
  repeats: (readonly Delivery[])[]
  changes: readonly Change[]
  deliveries: number
  produced: number
  /** The longest time between two deliveries to the same destination, in milliseconds. */
  longestPauseMs: number
  /** The time when the load began, in epoch milliseconds. */
  startedMs: number
  /** The log lines of all workers about the group, and all their lines whose level isn't `info`. */
  log: readonly { ms: number; text: string }[]
}

/** Changes a group of workers while messages are produced, and waits until all messages are settled. */
export async function underLoad({
  program,
  workers = 2,
  variablesOf = () => ({}),
  change,
}: {
  /** The program that the first workers run, if it isn't the program under test. */
  program?: string
  /** The number of workers at the start. */
  workers?: number
  /** Returns additional settings for the worker of that name, which runs `program` or the program under test. */
  variablesOf?: (name: string, program: string | undefined) => Record<string, string>
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
      // With shorter timeouts, Sluice would repeat requests that are only late because the machine is busy.
      // Such repeats don't come from the changes of the group.
      SLUICE_DELIVERY_TIMEOUT: '30s',
      SLUICE_SHUTDOWN_TIMEOUT: '25s',
    },
  })
  const group = new ChangingGroup({
    start: (name, other) =>
      startSluice(
        { ...scene.variables, ...variablesOf(name, other), CATALOG_WORKER: name },
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

/** Resolves when all is committed. A busy machine may take any time, as long as it goes on. */
async function allSettled(scene: Scene): Promise<void> {
  for (let least = Infinity; least > 0;) {
    const goesOn = async (): Promise<{ lag: number } | undefined> => {
      const lag = await scene.lag()
      return lag === 0 || lag < least ? { lag } : undefined
    }
    const what = `more than all but ${least} is committed`
    least = (await until(what, goesOn, { timeoutMs: 120_000, everyMs: 250 })).lag
  }
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
