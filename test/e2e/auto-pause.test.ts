import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readAll } from '../support/kafka.ts'
import { answer, type ReceivedRequest, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { runSluice, type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { newIds, type Scene, setScene } from './scene.ts'

/**
 * Tests of Sluice's automatic pause. Until they are repaired, the destination `crm` is down, and `left` answers
 * that it is gone (410). `well` always works, and `ops` gets the notices.
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
      to('left', 'shop'),
      to('well', 'shop', { signing: { standardWebhooks: true }, sharedSecret: secrets.old, ...well }),
      to('ops', 'sluice', { sharedSecret: secrets.ops }),
    ],
  }
}

beforeAll(async () => {
  receiver = await startReceiver({
    '/crm': (request, response, nth) => answer(isRepaired ? 200 : 500)(request, response, nth),
    '/left': (request, response, nth) => answer(isRepaired ? 200 : 410)(request, response, nth),
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
})

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

async function firstNotice(event: string, destination: string): Promise<Notice> {
  return until(
    `ops is told: ${event}`,
    () => notices(event).find(({ properties }) => properties['destination'] === destination),
    waitMs,
  )
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

/** Returns how many requests each of the paused destinations has got. */
function requests(): readonly number[] {
  return ['/crm', '/left'].map((path) => receiver.requestsTo(path).length)
}

/** Returns how many messages wait for paused destinations in the queues of all workers. */
async function waitingForPaused(): Promise<number> {
  const counts = workers.map((worker) => worker.metric('sluice_waiting_messages', { state: 'auto_paused' }))
  return (await Promise.all(counts)).reduce<number>((sum, count) => sum + (count ?? 0), 0)
}

test('a destination that has failed for long enough, and one that is gone, are paused by all workers, and each customer is told once', async () => {
  const ids = newIds(20)
  missed.push(...ids)
  await scene.send('shop', ids)
  const { properties } = await firstNotice('Destination Paused', 'crm')
  expect(properties).toMatchObject({ destination: 'crm', lastOutcome: 'status 500' })
  const left = await firstNotice('Destination Paused', 'left')
  expect(left.properties).toMatchObject({ destination: 'left', lastOutcome: 'status 410' })
  await allPause(2)
})

test('their messages wait, the new ones untried, and none is a dead letter', async () => {
  const before = receiver.requestsTo('/left').length
  expect(before).toBeLessThanOrEqual(20)
  const ids = newIds(20)
  missed.push(...ids)
  await scene.send('shop', ids)
  await until('all wait', async () => (await waitingForPaused()) === 2 * missed.length, waitMs)
  expect(await deadLetters()).toEqual([])
  expect(arrivedAt('/crm').filter((id) => ids.includes(id))).toEqual([])
  expect(receiver.requestsTo('/left')).toHaveLength(before)
  await until('others get all', () => missed.every((id) => arrivedAt('/well').includes(id)), waitMs)
})

test('a pause outlives all workers, none of which sends anything, and a replay to it stops', async () => {
  const before = workers
  const sent = requests()
  workers = [await startSluice(scene.variables)]
  await Promise.all(before.map((worker) => worker.terminate()))
  await allPause(2)
  await until('all wait', async () => (await waitingForPaused()) === 2 * missed.length, waitMs)
  const args = ['replay', 'events', '--destination', 'crm', '--all', '--json']
  const { stdout } = await runSluice(args, scene.variables)
  const job: unknown = JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
  expect(job).toMatchObject({ state: 'stopped', sent: { records: 0 } })
  expect(job).toHaveProperty('detail', expect.stringContaining('sluice destinations resume crm'))
  expect(requests()).toEqual(sent)
})

test('they are resumed by commands, and get what has waited and new messages', async () => {
  isRepaired = true
  const listed = await runSluice(['destinations', 'paused', '--json'], scene.variables)
  const paused = listed.stdout
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line))
  expect(paused).toMatchObject([
    { destination: 'left', lastOutcome: 'status 410', cause: 'gone' },
    { destination: 'crm', lastOutcome: 'status 500', cause: 'failing' },
  ])
  const { stdout } = await runSluice(['destinations', 'list', '--state', 'auto_paused'], scene.variables)
  expect(stdout).toMatch(/left .*\(gone\)/)
  await runSluice(['destinations', 'resume', 'crm', '--by', 'ann'], scene.variables)
  await runSluice(['destinations', 'retry-now', 'left'], scene.variables)
  for (const destination of ['crm', 'left']) {
    const { properties } = await firstNotice('Destination Resumed', destination)
    expect(properties).toMatchObject({ destination, cause: 'asked' })
  }
  await allPause(0)
  const ids = newIds(5)
  await scene.send('shop', ids)
  const expected = [...missed, ...ids].toSorted()
  for (const path of ['/crm', '/left'])
    await until(
      `all has arrived at ${path}`,
      () => expected.every((id) => arrivedAt(path).includes(id)),
      waitMs,
    )
  expect(await deadLetters()).toEqual([])
  expect(notices('Destination Paused')).toHaveLength(2)
  expect(notices('Destination Resumed')).toHaveLength(2)
  expect(notices('Dead Letters Exceeded')).toEqual([])
  const again = await runSluice(['destinations', 'resume', 'crm'], scene.variables, { expectedCode: 1 })
  expect(again.stderr).toContain('Sluice has not paused the destination "crm"')
})

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
  const endsAt = new Date(Date.now() + 25_000).toISOString()
  scene.catalog.rewrite(catalogOf({ nextSharedSecret: secrets.next, sharedSecretEndsAt: endsAt }))
  const both = await signedBy(2)
  expect(both.headers['x-signature']).toBe(createHmac('sha1', secrets.old).update(both.body).digest('hex'))
  const { properties } = await firstNotice('Secret Ending', 'well')
  expect(properties).toMatchObject({ destination: 'well', endsAt })
  const alone = await signedBy(1)
  expect(alone.headers['x-signature']).toBe(createHmac('sha1', secrets.next).update(alone.body).digest('hex'))
  expect(alone.atMs).toBeGreaterThanOrEqual(Date.parse(endsAt))
  expect(notices('Secret Ending')).toHaveLength(1)
})
