import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { withAdmin } from '../../src/kafka/cluster/with-admin.ts'
import { otherProgram, readAll } from '../support/kafka.ts'
import { answer, type ReceivedRequest, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { type LogLine, type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { newIds, type Scene, setScene } from './scene.ts'

/**
 * Tests of notices. The destination `crm` is down until it is repaired, and `gone` refuses every message.
 * `ops` gets the notices about both. `deaf` would get them too if its endpoint worked.
 */

const secret = 'the secret of ops'
const failingAfterMs = 2_000

let receiver: Receiver
let scene: Scene
let workers: SluiceProcess[] = []
let isRepaired = false

beforeAll(async () => {
  receiver = await startReceiver({
    '/crm': (request, response, nth) => answer(isRepaired ? 200 : 500)(request, response, nth),
    '/gone': answer(404),
    '/ops': answer(200),
    '/deaf': answer(500),
    '/older': answer(200),
    '/older-ops': answer(200),
  })
  const to = (id: string, source: string, more: object = {}) => ({
    id,
    sources: [source],
    hooks: [{ id: 'main', url: `${receiver.origin}/${id}` }],
    ...more,
  })
  scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }, { id: 'archive' }, { id: 'sluice' }],
      destinations: [
        to('crm', 'shop', { name: 'The CRM' }),
        to('gone', 'archive'),
        to('ops', 'sluice', { sharedSecret: secret }),
        to('deaf', 'sluice'),
      ],
    },
    variables: {
      SLUICE_TOPICS_PARTITIONS: '4',
      SLUICE_WORKER_PROCESSES: '1',
      SLUICE_NOTICES_FAILING_AFTER: `${failingAfterMs}ms`,
      SLUICE_NOTICES_DEAD_LETTERS: '6',
      SLUICE_RETRY_LADDER: '1s',
      SLUICE_RETRY_THEN: '1s',
      SLUICE_RETRY_LIMIT: '10m',
      SLUICE_BREAKER_MAX_OPEN_FOR: '5s',
    },
  })
  workers = await Promise.all([startSluice(scene.variables), startSluice(scene.variables)])
})

afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.terminate()))
  await receiver.stop()
  scene.close()
})

type Notice = {
  type: string
  event: string
  messageId: string
  properties: { destination: string } & Record<string, unknown>
}

/** Returns the notices of one event that `ops` received, in order of arrival, including repeats. */
function noticesOf(event: string): readonly { request: ReceivedRequest; notice: Notice }[] {
  return receiver
    .requestsTo('/ops')
    .map((request) => ({ request, notice: JSON.parse(request.body.toString()) }))
    .filter(({ notice }) => notice.event === event)
}

async function firstOf(event: string) {
  return until(`ops is told: ${event}`, () => noticesOf(event)[0], { timeoutMs: 60_000 })
}

/** Returns the keys of the reports about failing hooks. Each worker writes its reports with its own key. */
async function reporters(): Promise<ReadonlySet<string>> {
  const records = await readAll(`${scene.prefix}notices`)
  const reports = records.filter(({ key, value }) => key?.includes('report') && value?.includes('"hookId"'))
  return new Set(reports.map(({ key }) => key ?? ''))
}

test('a hook that fails at two workers makes one notice, which is signed', async () => {
  await scene.send('shop', newIds(40))
  const { request, notice } = await firstOf('Endpoint Failing')
  expect(request.headers['x-signature']).toBe(createHmac('sha1', secret).update(request.body).digest('hex'))
  expect(notice).toMatchObject({
    type: 'track',
    anonymousId: 'crm',
    properties: {
      destination: 'crm',
      destinationName: 'The CRM',
      hook: 'main',
      lastOutcome: 'status 500',
      times: 1,
    },
  })
  await until('both workers have seen it', async () => (await reporters()).size === 2, { timeoutMs: 60_000 })
})

test('dead letters of two workers make one notice, with the sum', async () => {
  await scene.send('archive', newIds(10))
  const { notice } = await firstOf('Dead Letters Exceeded')
  const { count, reasons, destination } = notice.properties
  expect(destination).toBe('gone')
  expect(reasons).toEqual({ failed_for_good: count })
  expect(count).toBeGreaterThanOrEqual(6)
})

test('other workers than those that told of a failing hook tell that it has recovered, once', async () => {
  const before = workers
  workers = [await startSluice(scene.variables)]
  await Promise.all(before.map((worker) => worker.terminate()))
  const [replacement] = workers
  isRepaired = true
  await scene.send('shop', newIds(20))
  const { notice } = await firstOf('Endpoint Recovered')
  const [failing] = noticesOf('Endpoint Failing')
  expect(notice.properties).toMatchObject({ destination: 'crm', since: failing?.notice.properties['since'] })
  await until(
    'it is counted',
    async () => (await replacement?.metric('sluice_notices_sent_total', { kind: 'recovered' })) === 1,
  )
})

test('a destination that fails to take its notices makes none, and nobody is told anything twice', async () => {
  const deaf = await until(
    'deaf has failed for much longer than is told',
    () => {
      const times = receiver.requestsTo('/deaf').map(({ atMs }) => atMs)
      const hasFailedForMs = (times.at(-1) ?? 0) - (times[0] ?? 0)
      return times.length > 6 && hasFailedForMs > 5 * failingAfterMs ? times : undefined
    },
    { timeoutMs: 60_000 },
  )
  expect(deaf.length).toBeGreaterThan(6)
  const told = receiver.requestsTo('/ops').map(({ body }): Notice => JSON.parse(body.toString()))
  expect(told.map(({ event, properties }) => `${event}: ${properties.destination}`).toSorted()).toEqual([
    'Dead Letters Exceeded: gone',
    'Endpoint Failing: crm',
    'Endpoint Recovered: crm',
  ])
  const letters = await readAll(`${scene.prefix}dead-letters`)
  expect(letters.filter(({ headers }) => headers['source-id'] === 'sluice')).toEqual([])
})

function isSaid({ msg }: LogLine): boolean {
  return msg.startsWith('no notices are made')
}

test('an installation that has no topic for notices delivers all the same, and says once what to run', async () => {
  const older = await setScene({
    catalog: {
      sources: [{ id: 'shop' }, { id: 'sluice' }],
      destinations: [
        { id: 'crm', sources: ['shop'], hooks: [{ url: `${receiver.origin}/older` }] },
        { id: 'ops', sources: ['sluice'], hooks: [{ url: `${receiver.origin}/older-ops` }] },
      ],
    },
    variables: { SLUICE_WORKER_PROCESSES: '1', SLUICE_NOTICES_FAILING_AFTER: '1s' },
  })
  await withAdmin(otherProgram(), (admin) => admin.deleteTopics({ topics: [`${older.prefix}notices`] }))
  const worker = await startSluice(older.variables)
  await until('it is said', () => worker.log.some(isSaid))
  await until('it was tried again', async () => (await worker.metric('sluice_notice_failures_total')) > 1)
  await older.send('shop', newIds(5))
  await until('all is delivered', () => receiver.requestsTo('/older').length === 5)
  expect((await worker.wholeLog()).filter(isSaid)).toHaveLength(1)
  await worker.terminate()
  older.close()
})
