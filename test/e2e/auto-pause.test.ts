import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readAll } from '../support/kafka.ts'
import { answer, type ReceivedRequest, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { runSluice, type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { newIds, type Scene, setScene } from './scene.ts'

/**
 * Tests of Sluice's automatic pause. The destination `crm` is down until it is repaired, `well` always works,
 * and `ops` gets the notices.
 */

const secrets = { ops: 'the secret of ops', old: 'the old one of well', next: 'the next one of well' }
const waitMs = { timeoutMs: 60_000 }

let receiver: Receiver
let scene: Scene
let workers: SluiceProcess[] = []
let isRepaired = false
const missed: string[] = []

function to(id: string, source: string, more: object = {}) {
  return { id, sources: [source], hooks: [{ id: 'main', url: `${receiver.origin}/${id}` }], ...more }
}

function catalogOf(well: object = {}) {
  return {
    sources: [{ id: 'shop' }, { id: 'sluice' }],
    destinations: [
      to('crm', 'shop'),
      to('well', 'shop', { signing: { standardWebhooks: true }, sharedSecret: secrets.old, ...well }),
      to('ops', 'sluice', { sharedSecret: secrets.ops }),
    ],
  }
}

beforeAll(async () => {
  receiver = await startReceiver({
    '/crm': (request, response, nth) => answer(isRepaired ? 200 : 500)(request, response, nth),
    '/well': answer(200),
    '/ops': answer(200),
  })
  scene = await setScene({
    catalog: catalogOf(),
    variables: {
      SLUICE_TOPICS_PARTITIONS: '4',
      SLUICE_WORKER_PROCESSES: '1',
      SLUICE_NOTICES_FAILING_AFTER: '1s',
      SLUICE_NOTICES_AUTO_PAUSE: '4s',
      SLUICE_NOTICES_DEAD_LETTERS: '1',
      SLUICE_RETRY_LADDER: '1s',
      SLUICE_RETRY_THEN: '1s',
      SLUICE_RETRY_LIMIT: '10m',
      SLUICE_BREAKER_MAX_OPEN_FOR: '5s',
    },
  })
  workers = await Promise.all([startSluice(scene.variables), startSluice(scene.variables)])
}, 120_000)

afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.terminate()))
  await receiver.stop()
  scene.close()
})

type Notice = { event: string; messageId: string; properties: Record<string, unknown> }

/** Returns the notices of one event that `ops` received, each only once. Fails if a signature is wrong. */
function notices(event: string): readonly Notice[] {
  const all = receiver.requestsTo('/ops').map(({ headers, body }): Notice => {
    expect(headers['x-signature']).toBe(createHmac('sha1', secrets.ops).update(body).digest('hex'))
    return JSON.parse(body.toString())
  })
  return [...new Map(all.map((notice) => [notice.messageId, notice])).values()].filter(
    (notice) => notice.event === event,
  )
}

async function firstNotice(event: string): Promise<Notice> {
  return until(`ops is told: ${event}`, () => notices(event)[0], waitMs)
}

/** Returns the ids of the messages that arrived at a path, each only once, sorted. */
function arrivedAt(path: string): readonly string[] {
  const ids = receiver
    .requestsTo(path)
    .map(({ body }) => String(Object(JSON.parse(body.toString())).messageId))
  return [...new Set(ids)].toSorted()
}

async function deadLetters() {
  return readAll(`${scene.prefix}dead-letters`)
}

async function allPause(count: number): Promise<void> {
  for (const worker of workers)
    await until(
      `a worker has ${count} paused`,
      async () => (await worker.metric('sluice_catalog_destinations', { state: 'auto_paused' })) === count,
      waitMs,
    )
}

function replay(): ReturnType<typeof runSluice> {
  const args = ['replay', 'dead-letters', '--destination', 'crm', '--reason', 'auto_paused', '--json']
  return runSluice(args, scene.variables)
}

test('a destination that has failed for long enough is paused by all workers, and its customer is told once', async () => {
  const ids = newIds(20)
  missed.push(...ids)
  await scene.send('shop', ids)
  const { properties } = await firstNotice('Destination Paused')
  expect(properties).toMatchObject({ destination: 'crm', lastOutcome: 'status 500' })
  await allPause(1)
}, 120_000)

test('its messages end as dead letters: the new ones untried, those that wait when they are due', async () => {
  const ids = newIds(20)
  missed.push(...ids)
  await scene.send('shop', ids)
  const letters = await until(
    'all are dead letters',
    async () => {
      const found = await deadLetters()
      return found.length >= missed.length ? found : undefined
    },
    waitMs,
  )
  expect(letters.map(({ headers }) => String(headers['message-id'])).toSorted()).toEqual(missed.toSorted())
  expect(new Set(letters.map(({ headers }) => headers['reason']))).toEqual(new Set(['auto_paused']))
  expect(letters[0]?.headers['detail']).toContain('sluice destinations resume crm')
  expect(arrivedAt('/crm').filter((id) => ids.includes(id))).toEqual([])
  await until('nothing waits', async () => (await scene.lag()) === 0, waitMs)
  expect(arrivedAt('/well')).toEqual(missed.toSorted())
}, 120_000)

test('a pause outlives all workers, and a replay to it stops, with nothing sent', async () => {
  const before = workers
  workers = [await startSluice(scene.variables)]
  await Promise.all(before.map((worker) => worker.terminate()))
  await allPause(1)
  const { stdout } = await replay()
  const job: unknown = JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
  expect(job).toMatchObject({ state: 'stopped', sent: { records: 0 } })
  expect(job).toHaveProperty('detail', expect.stringContaining('sluice destinations resume crm'))
  expect(await deadLetters()).toHaveLength(missed.length)
}, 120_000)

test('it is resumed by a command, gets new messages, and by a replay what it missed', async () => {
  isRepaired = true
  const listed = await runSluice(['destinations', 'paused', '--json'], scene.variables)
  expect(JSON.parse(listed.stdout)).toMatchObject({ destination: 'crm', lastOutcome: 'status 500' })
  await runSluice(['destinations', 'resume', 'crm', '--by', 'ann'], scene.variables)
  const { properties } = await firstNotice('Destination Resumed')
  expect(properties).toMatchObject({ destination: 'crm', cause: 'asked' })
  await allPause(0)
  const ids = newIds(5)
  await scene.send('shop', ids)
  await replay()
  const expected = [...missed, ...ids].toSorted()
  const hasAll = () => expected.every((id) => arrivedAt('/crm').includes(id))
  await until('all has arrived', hasAll, waitMs)
  expect(await deadLetters()).toHaveLength(missed.length)
  expect(notices('Destination Paused')).toHaveLength(1)
  expect(notices('Destination Resumed')).toHaveLength(1)
  expect(notices('Dead Letters Exceeded')).toEqual([])
  const again = await runSluice(['destinations', 'resume', 'crm'], scene.variables, { expectedCode: 1 })
  expect(again.stderr).toContain('Sluice has not paused the destination "crm"')
}, 120_000)

/**
 * Sends new messages until one arrives at `well` with `count` signatures. Returns the request of this
 * message.
 */
async function signedBy(count: number): Promise<ReceivedRequest> {
  return until(
    `well gets ${count} signatures`,
    async () => {
      const [id = ''] = newIds(1)
      await scene.send('shop', [id])
      const request = await until('it has arrived', () =>
        receiver.requestsTo('/well').find(({ body }) => body.includes(id)),
      )
      return signaturesOf(request).length === count ? request : undefined
    },
    waitMs,
  )
}

function signaturesOf({ headers }: ReceivedRequest): readonly string[] {
  return String(headers['webhook-signature']).split(' ')
}

test('a secret that ends is told before, and then the next one signs alone', async () => {
  const endsAt = new Date(Date.now() + 12_000).toISOString()
  scene.catalog.rewrite(catalogOf({ nextSharedSecret: secrets.next, sharedSecretEndsAt: endsAt }))
  const both = await signedBy(2)
  expect(both.headers['x-signature']).toBe(createHmac('sha1', secrets.old).update(both.body).digest('hex'))
  const { properties } = await firstNotice('Secret Ending')
  expect(properties).toMatchObject({ destination: 'well', endsAt })
  const alone = await signedBy(1)
  expect(alone.headers['x-signature']).toBe(createHmac('sha1', secrets.next).update(alone.body).digest('hex'))
  expect(alone.atMs).toBeGreaterThanOrEqual(Date.parse(endsAt))
  expect(notices('Secret Ending')).toHaveLength(1)
}, 120_000)
