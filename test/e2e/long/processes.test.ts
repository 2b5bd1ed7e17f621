import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import process from 'node:process'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { freePorts } from '../../../src/development/free-ports.ts'
import { type CountingReceiver, startCountingReceiver } from '../../support/counting-receiver.ts'
import { randomPrefix, testKafka } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { runSluice, runToEnd, type SluiceProcess, startSluice } from '../../support/worker-process.ts'
import { newIds, unhurried, type Scene, setScene } from '../scene.ts'

let receiver: CountingReceiver
let scene: Scene | undefined
let worker: SluiceProcess | undefined

beforeEach(async () => {
  receiver = await startCountingReceiver()
})

afterEach(async () => {
  if (worker?.isRunning) await worker.kill()
  worker = undefined
  scene?.close()
  scene = undefined
  await receiver.stop()
})

const partitions = 6

/** Opens a scene with one destination, and starts a worker with two processes in it. */
async function begin(
  variables: Readonly<Record<string, string>> = {},
): Promise<{ of: Scene; pair: SluiceProcess }> {
  const of = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [
        { id: 'crm', sources: ['shop'], maxInFlight: 30, hooks: [{ url: receiver.url('/crm') }] },
      ],
    },
    variables: {
      ...unhurried,
      SLUICE_TOPICS_PARTITIONS: String(partitions),
      SLUICE_WORKER_PROCESSES: '2',
      SLUICE_RETRY_LADDER: '1s',
      SLUICE_RETRY_THEN: '1s',
      ...variables,
    },
  })
  scene = of
  const pair = await startSluice(of.variables)
  worker = pair
  await until('they share the partitions', async () => {
    const [one = 0, two] = [1, 2].map((number) =>
      Number(
        pair.log.findLast((line) => line.msg === 'joined the group' && line['process'] === number)?.[
          'partitions'
        ],
      ),
    )
    return one > 0 && one === two
  })
  await until('both are ready', async () => (await probe(pair, '/readyz')).status === 200)
  return { of, pair }
}

/**
 * Starts a worker with one process, which takes over what the two processes have left. With two processes,
 * the second one might join later, and its join might repeat deliveries that are in flight.
 */
async function finishAlone({ variables }: Scene): Promise<void> {
  worker = await startSluice({ ...variables, SLUICE_WORKER_PROCESSES: '1' })
}

/** Returns the process ids of the two processes. */
function pidsOf({ log }: SluiceProcess): number[] {
  return [1, 2].map((number) =>
    Number(log.find((line) => line.msg === 'process started' && line['process'] === number)?.['pid']),
  )
}

type Probed = Pick<SluiceProcess, 'httpPort'>

async function probe({ httpPort }: Probed, path: string): Promise<{ status: number; text: string }> {
  const response = await fetch(`http://127.0.0.1:${httpPort}${path}`)
  return { status: response.status, text: await response.text() }
}

/**
 * Returns how many messages arrived once, twice and so on. The result is `{ 1: 3000 }` when each of 3,000
 * messages arrived once.
 */
async function histogram(): Promise<Record<number, number>> {
  const counts: Record<number, number> = {}
  for (const times of (await receiver.arrivals('/crm')).values())
    counts[times.length] = (counts[times.length] ?? 0) + 1
  return counts
}

async function partHasArrived(): Promise<void> {
  await until('a part has arrived', async () => (await receiver.count('/crm')).requests >= 500)
}

async function allHaveArrived(ids: readonly string[]): Promise<void> {
  await until('all have arrived', async () => (await receiver.count('/crm')).delivered === ids.length)
}

function stoppedOf({ log }: SluiceProcess): unknown[] {
  return log.filter(({ msg }) => msg === 'process stopped').map((line) => line['process'])
}

describe('two processes', () => {
  test('share the partitions, deliver all, and are one worker to those who look', async () => {
    const { of, pair } = await begin()
    const ids = newIds(2_000)
    await of.send('shop', ids)
    await allHaveArrived(ids)
    expect(await histogram()).toEqual({ 1: ids.length })
    await until('all is settled', async () => (await pair.metric('sluice_consumer_lag_records')) === 0)

    expect(await pair.metric('sluice_records_total', { topic: 'events' })).toBe(ids.length)
    expect(await pair.metric('sluice_deliveries_total', { verdict: 'delivered' })).toBe(ids.length)
    expect(await pair.metric('sluice_attempt_duration_seconds_count')).toBe(ids.length)
    expect(await pair.metric('sluice_catalog_destinations')).toBe(1)
    expect(await pair.metric('sluice_ready', { role: 'worker' })).toBe(1)
    expect(await pair.metric('process_cpu_seconds_total')).toBeGreaterThan(0)
    const { text } = await probe(pair, '/metrics')
    const lags = [...text.matchAll(/^sluice_consumer_lag_records\{(.*)\} 0$/gm)].map(([, labels]) => labels)
    // The topics are `events`, `audience-changes`, `deletions`, `memberships`, `replays` and `retry.1s`.
    expect(lags).toHaveLength(6 * partitions)
    expect(new Set(lags).size).toBe(lags.length)
    // Whatever a scrape counts is in the log before it is answered.
    const attempts = pair.log.filter((line) => 'messageId' in line && 'durationMs' in line)
    expect(attempts).toHaveLength(ids.length)
    expect(new Set(attempts.map((line) => line['process']))).toEqual(new Set([1, 2]))
    expect(pair.log.filter(({ level }) => level === 'none')).toEqual([])
  })

  test('end by one SIGTERM, repeat nothing and lose nothing', async () => {
    await receiver.behave('/crm', { delayMs: 50 })
    const { of, pair } = await begin()
    const ids = newIds(1_500)
    await of.send('shop', ids)
    await partHasArrived()
    const { code, tookMs } = await pair.terminate()
    expect(code).toBe(0)
    expect(tookMs).toBeLessThan(10_000)
    expect(new Set(stoppedOf(pair))).toEqual(new Set([1, 2]))
    expect((await receiver.count('/crm')).requests).toBeLessThan(ids.length)
    await finishAlone(of)
    await allHaveArrived(ids)
    expect(await histogram()).toEqual({ 1: ids.length })
  })

  test('end at once by a second signal', async () => {
    await receiver.behave('/crm', { isHung: true })
    const { of, pair } = await begin()
    await of.send('shop', newIds(20))
    await until('requests hang', async () => (await receiver.count('/crm')).inFlight >= 5)
    process.kill(pair.pid, 'SIGTERM')
    await until('it stops', async () => (await probe(pair, '/readyz')).text === 'stopping\n')
    await until('it has taken a second signal', () => {
      if (pair.isRunning) process.kill(pair.pid, 'SIGTERM')
      return !pair.isRunning
    })
    expect(await pair.exited).toBe(130)
    expect(stoppedOf(pair)).toEqual([])
    await until('both are gone', () => pidsOf(pair).every(isGone))
  })

  test('end with an error that names the one that was killed, and the other stops in good order', async () => {
    await receiver.behave('/crm', { delayMs: 50 })
    const { of, pair } = await begin()
    const ids = newIds(1_500)
    await of.send('shop', ids)
    await partHasArrived()
    const [, second = 0] = pidsOf(pair)
    process.kill(second, 'SIGKILL')
    expect(await pair.exited).toBe(1)
    const errors = pair.log.filter(({ level }) => level === 'fatal')
    expect(errors).toHaveLength(1)
    expect(errors[0]).toMatchObject({
      msg: 'sluice can not go on',
      err: { message: `process 2 (pid ${second}) was killed by SIGKILL` },
    })
    expect(stoppedOf(pair)).toEqual([1])
    await finishAlone(of)
    await allHaveArrived(ids)
  })

  test('stop in good order when the first process is killed', async () => {
    await receiver.behave('/crm', { delayMs: 50 })
    const { of, pair } = await begin()
    const ids = newIds(1_500)
    await of.send('shop', ids)
    await partHasArrived()
    await pair.kill()
    await until('both have stopped', () => stoppedOf(pair).length === 2)
    await until('both are gone', () => pidsOf(pair).every(isGone))
    await finishAlone(of)
    await allHaveArrived(ids)
    expect(await histogram()).toEqual({ 1: ids.length })
  })

  test('end with an error if one of them hangs, which is killed when its time to stop is over', async () => {
    const { pair } = await begin({ SLUICE_SHUTDOWN_TIMEOUT: '1s' })
    const [, second = 0] = pidsOf(pair)
    process.kill(second, 'SIGSTOP')
    expect((await pair.terminate()).code).toBe(1)
    expect(pair.log).toContainEqual(
      expect.objectContaining({ msg: 'a process did not stop in time: killing it', process: 2 }),
    )
    expect(stoppedOf(pair)).toEqual([1])
    expect(pidsOf(pair).every(isGone)).toBe(true)
  })

  test('are not live, not ready and not measured while one of them hangs', async () => {
    const { pair } = await begin()
    const [, second = 0] = pidsOf(pair)
    process.kill(second, 'SIGSTOP')
    const startedMs = performance.now()
    const answers = await Promise.all(['/metrics', '/readyz', '/livez'].map((path) => probe(pair, path)))
    expect(performance.now() - startedMs).toBeLessThan(5_000)
    process.kill(second, 'SIGCONT')
    for (const answer of answers) {
      expect(answer).toEqual({ status: 503, text: 'process 2 did not answer within 4000 ms\n' })
    }
    for (const path of ['/metrics', '/livez', '/readyz'])
      await until(`${path} is well again`, async () => (await probe(pair, path)).status === 200)
  })
})

test('nothing is ready or measured before there are processes: while Kafka is being reached', async () => {
  const kafka = createServer((socket) => socket.on('error', () => undefined))
  onTestFinished(() => void kafka.close())
  const [httpPort = 0, kafkaPort = 0] = await freePorts(2)
  kafka.listen(kafkaPort, '127.0.0.1')
  scene = await setScene({ catalog: { sources: [], destinations: [] } })
  const ended = runToEnd(['worker', '--processes', '2'], {
    ...scene.variables,
    SLUICE_KAFKA_BROKERS: `127.0.0.1:${kafkaPort}`,
    SLUICE_HTTP_PORT: String(httpPort),
  })
  const ready = await until('its port is open', () => probe({ httpPort }, '/readyz'))
  expect(ready).toEqual({ status: 503, text: 'starting\n' })
  expect(await probe({ httpPort }, '/metrics')).toEqual({ status: 503, text: 'starting\n' })
  expect(await probe({ httpPort }, '/livez')).toEqual({ status: 200, text: 'live\n' })
  expect((await ended).code).toBe(1)
})

describe('what keeps them from starting is said once', () => {
  test('a configuration with a fault', async () => {
    const { stdout, stderr } = await runSluice(
      ['worker', '--processes', '2'],
      { SLUICE_DELIVERY_TIMEOUT: 'fast' },
      { expectedCode: 1 },
    )
    expect(stdout).toBe('')
    expect(stderr.trim().split('\n')).toEqual([
      'sluice: The configuration has a fault:',
      expect.stringContaining('delivery.timeout (SLUICE_DELIVERY_TIMEOUT)'),
    ])
  })

  test('topics that do not exist', async () => {
    const of = await setScene({ catalog: { sources: [], destinations: [] } })
    scene = of
    const prefix = randomPrefix()
    const { stderr } = await runSluice(
      ['worker', '--processes', '2'],
      { ...of.variables, SLUICE_KAFKA_TOPIC_PREFIX: prefix },
      { expectedCode: 1 },
    )
    expect(stderr.split('The topics differ from what Sluice needs:')).toHaveLength(2)
    expect(stderr.split(`${prefix}events does not exist`)).toHaveLength(2)
    expect(stderr).not.toMatch(/^\s+at /m)
  })

  test('a catalog that does not exist', async () => {
    const { stdout, stderr } = await runSluice(
      ['worker', '--processes', '2'],
      { SLUICE_KAFKA_BROKERS: testKafka().join(','), SLUICE_CATALOG_FILE: '/nowhere/catalog.yaml' },
      { expectedCode: 1 },
    )
    expect(stderr.split('sluice: ')).toHaveLength(2)
    expect(stderr).toContain('/nowhere/catalog.yaml')
    expect(stdout).not.toContain('fatal')
  })
})

/**
 * Returns true if no process has this id, or if the process is a zombie because its parent has not waited for
 * it yet.
 */
function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return true
  }
}
