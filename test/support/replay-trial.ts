import { expect } from 'vitest'
import type { LogRecord } from '../../src/delivery-log/log-record.ts'
import { setScene } from '../e2e/scene.ts'
import type { CountingReceiver } from './counting-receiver.ts'
import { readLog } from './delivery-log.ts'
import { letterOf, nameOwnTimes, writeLetters } from './dead-letters.ts'
import { readAll } from './kafka.ts'
import { until } from './until.ts'
import { runSluice, type SluiceProcess, startSluice } from './worker-process.ts'

const hourMs = 3_600_000
const destinations = ['erp', 'crm', 'shipping'] as const

/** The results of a replay. Most of the numbers are counts of records. */
export type ReplayTrial = {
  /** The number of dead letters that match the request. The replay should send these and no others. */
  readonly wanted: number
  readonly counted: number
  readonly job: number
  readonly arrived: number
  /**
   * The number of messages and requests that don't belong to the replay, because they are for other
   * destinations or hours.
   */
  readonly strangers: number
  /**
   * The number of records in `replays` beyond the first record of a message. Each kill of the replay's owner
   * may cause some.
   */
  readonly repeatedByJob: number
  readonly owners: number
  /**
   * The number of messages that the replay has delivered, according to the delivery log. A killed worker
   * loses the log records that it hasn't written yet.
   */
  readonly logged: number
  /** The number of records in the delivery log that name the replay but belong to none of its messages. */
  readonly strangersLogged: number
  /**
   * The largest number of requests that arrived within 5 s, divided by the number that the rate allows in
   * that time.
   */
  readonly busiest: number
  readonly tookMs: number
  /** The number of requests that arrived at the replay's destination, including repeats. */
  readonly requests: number
}

/**
 * Writes `letters` dead letters of three destinations, spread over `hours` hours. Replays the dead letters of
 * one destination and one hour with two workers. Twice during the replay, kills the worker that owns the
 * replay, and starts another worker.
 */
export async function tryReplay({
  letters,
  hours,
  perSecond,
  receiver,
}: {
  letters: number
  hours: number
  perSecond: number
  receiver: CountingReceiver
}): Promise<ReplayTrial> {
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: destinations.map((id) => ({
        id,
        sources: ['shop'],
        hooks: [{ id: 'main', url: receiver.url(`/${id}`) }],
      })),
    },
    variables: {
      SLUICE_TOPICS_CHECK: 'warn',
      SLUICE_LOG_ATTEMPTS: 'false',
      SLUICE_REPEATS_MESSAGES: '10000',
    },
  })
  const deadLetters = `${scene.prefix}dead-letters`
  await nameOwnTimes(deadLetters)
  const beginMs = Math.floor(Date.now() / hourMs) * hourMs - (hours + 1) * hourMs
  const fromMs = beginMs + Math.floor(hours / 2) * hourMs
  const wanted = new Set<string>()
  function* all() {
    for (let index = 0; index < letters; index++) {
      const atMs = beginMs + Math.floor((index / letters) * hours * hourMs)
      const destinationId = destinations[index % destinations.length] ?? 'erp'
      const messageId = `m-${index}`
      if (destinationId === 'erp' && atMs >= fromMs && atMs < fromMs + hourMs) wanted.add(messageId)
      yield letterOf({ destinationId, messageId, atMs }, scene.prefix)
    }
  }
  await writeLetters(deadLetters, all())
  const workers: SluiceProcess[] = []
  const start = async (): Promise<void> => {
    workers.push(await startSluice(scene.variables, { readyMs: 60_000 }))
  }
  try {
    for (let count = 0; count < 2; count++) await start()
    const times = ['--from', new Date(fromMs).toISOString(), '--to', new Date(fromMs + hourMs).toISOString()]
    const command = ['replay', 'dead-letters', '--destination', 'erp', ...times, '--json']
    const dry = await runSluice([...command, '--dry-run'], scene.variables)
    const preview: unknown = JSON.parse(dry.stdout)
    expect(preview).toMatchObject({ counted: { records: wanted.size, leftOut: {} } })
    const startedMs = performance.now()
    const rate = ['--rate', String(perSecond), '--detach']
    const asked = await runSluice([...command, ...rate], scene.variables)
    const [, order = '{}'] = asked.stdout.trim().split('\n')
    const { id, counted }: { id: string; counted: { records: number } } = JSON.parse(order)
    for (const share of [0.3, 0.6]) {
      await until(
        `${share} of it has arrived`,
        async () => (await receiver.count('/erp')).distinct >= share * wanted.size,
        { timeoutMs: 300_000, everyMs: 100 },
      )
      const owner = await until('somebody has it', async () => {
        const { owner: name }: { owner: string | null } = await show(id)
        return workers.find(({ pid, isRunning }) => isRunning && name?.includes(`:${pid}:`))
      })
      await owner.kill()
      await start()
    }
    const done = await until(
      'it is done',
      async () => {
        const shown = await show(id)
        return shown.state === 'done' ? shown : undefined
      },
      { timeoutMs: 600_000, everyMs: 1_000 },
    )
    await until('all is delivered', async () => (await scene.lag()) === 0, {
      timeoutMs: 60_000,
      everyMs: 500,
    })
    const tookMs = performance.now() - startedMs
    const written = await readAll(`${scene.prefix}replays`, { timeoutMs: 120_000 })
    const ids = written.map(({ headers }) => headers['message-id'] ?? '')
    const arrivals = await receiver.arrivals('/erp')
    const ofJob = (await readLog(`${scene.prefix}attempts`)).filter(({ job }) => job === id)
    const isOfIt = ({ destination, messageId }: LogRecord): boolean =>
      destination === 'erp' && wanted.has(messageId)
    const delivered = ofJob.filter((record) => isOfIt(record) && record.isEnd && record.kind !== 'dead')
    const others = (await receiver.count('/crm')).requests + (await receiver.count('/shipping')).requests
    return {
      wanted: wanted.size,
      counted: counted.records,
      job: done.sent.records,
      arrived: [...arrivals.keys()].filter((messageId) => wanted.has(messageId)).length,
      strangers: [...arrivals.keys()].filter((messageId) => !wanted.has(messageId)).length + others,
      repeatedByJob: ids.length - new Set(ids).size,
      owners: done.owners,
      logged: new Set(delivered.map(({ messageId }) => messageId)).size,
      strangersLogged: ofJob.filter((record) => !isOfIt(record)).length,
      busiest: busiestOf([...arrivals.values()].flat(), 5_000) / (5 * perSecond),
      tookMs,
      requests: (await receiver.count('/erp')).requests,
    }
  } finally {
    for (const worker of workers) await worker.kill()
    scene.close()
  }

  async function show(
    id: string,
  ): Promise<{ state: string; owner: string | null; owners: number; sent: { records: number } }> {
    const { stdout } = await runSluice(['replay', 'show', id, '--json'], scene.variables)
    return JSON.parse(stdout)
  }
}

/** Returns the largest number of times within `windowMs` milliseconds. */
function busiestOf(times: readonly number[], windowMs: number): number {
  const sorted = times.toSorted((one, other) => one - other)
  let most = 0
  for (let first = 0, last = 0; last < sorted.length; last++) {
    while ((sorted[last] ?? 0) - (sorted[first] ?? 0) >= windowMs) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}
