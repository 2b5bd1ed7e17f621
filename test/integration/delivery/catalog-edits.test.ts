import { afterAll, beforeAll, expect, test } from 'vitest'
import { answer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { soonest } from '../../support/soonest.ts'
import { until } from '../../support/until.ts'
import { type Deployment, type DestinationEntry, deploy } from './deployment.ts'

/** Tests in which the catalog file is edited while messages arrive and wait. */

let server: Receiver
let sluice: Deployment

/** The time that `/slow` takes for an answer, in milliseconds. */
const slowMs = 600
/** How long a delivery is tried, in seconds: longer than an edit needs to be in force, on a busy machine too. */
const limitS = 12

beforeAll(async () => {
  server = await startReceiver({
    '/up': answer(200),
    '/paused': answer(200),
    '/removed': answer(500),
    '/off-later': answer(500),
    '/new': answer(200),
    '/slow': (_request, response) => void setTimeout(() => response.end(), slowMs),
  })
  sluice = await deploy({
    destinations: atFirst(),
    variables: {
      SLUICE_RETRY_LADDER: '1s,2s',
      SLUICE_RETRY_THEN: '1s',
      SLUICE_RETRY_LIMIT: `${limitS}s`,
      SLUICE_DELIVERY_TIMEOUT: '3s',
      SLUICE_DELIVERY_LANE_WAIT: '1m',
      SLUICE_METRICS_PER_DESTINATION: 'true',
    },
  })
})

afterAll(async () => {
  await sluice?.stop()
  await server?.stop()
})

function destination(id: string, rest: Partial<DestinationEntry> = {}): DestinationEntry {
  return { id, sources: [id], hooks: [{ url: `${server.origin}/${id}` }], ...rest }
}

function atFirst(): DestinationEntry[] {
  return [
    destination('up'),
    destination('paused', { state: 'paused' }),
    destination('removed'),
    destination('off-later'),
  ]
}

function ping(messageId: string, fields: object = {}): object {
  return { type: 'track', userId: 'u1', event: 'Ping', messageId, ...fields }
}

async function arrived(path: string, messageId: string): Promise<void> {
  await until(`${messageId} came at ${path}`, () => messageIdsAt(path).includes(messageId))
}

/** Returns the messages of the last test that came at `/slow`. */
function came(): string[] {
  return messageIdsAt('/slow').filter((id) => id.startsWith('slow-'))
}

function messageIdsAt(path: string): string[] {
  return server.requestsTo(path).map(({ body }) => JSON.parse(body.toString()).messageId)
}

test('what is for a paused destination waits past the limit, and is delivered once it is on', async () => {
  const ids = ['paused-1', 'paused-2', 'paused-3']
  await sluice.send(
    'paused',
    ids.map((id) => ({ value: ping(id) })),
  )
  const waiting = await sluice.read('waiting', ids.length)
  const latestMs = Math.max(...waiting.map(({ timestamp }) => timestamp))
  await until('the limit has passed', () => Date.now() - latestMs > limitS * 1_000 + 500)
  expect(server.requestsTo('/paused')).toEqual([])
  expect(await sluice.worker.metric('sluice_dead_letters_total')).toBe(0)

  sluice.recatalog([
    destination('up'),
    destination('paused'),
    destination('removed'),
    destination('off-later'),
  ])
  for (const id of ids) await arrived('/paused', id)
  expect(messageIdsAt('/paused').toSorted()).toEqual(ids)
})

test('a destination is live within a second of the edit that adds it', async () => {
  const all = atFirst()
  const enoughMs = 1_000
  const tookMs = await soonest(enoughMs, async (nth) => {
    all.push(destination(nth === 1 ? 'new' : `new-${nth}`))
    sluice.recatalog(all)
    await until(
      'it is in force',
      async () => (await sluice.worker.metric('sluice_catalog_destinations')) === all.length,
      { everyMs: 10 },
    )
  })
  expect(tookMs).toBeLessThan(enoughMs)
  await sluice.send('new', [{ value: ping('to-the-new') }])
  await arrived('/new', 'to-the-new')
})

test('what waits for a destination that is removed or switched off becomes a dead letter', async () => {
  sluice.recatalog(atFirst())
  await sluice.send('removed', [{ key: 'removed', value: ping('for-removed') }])
  await sluice.send('off-later', [{ key: 'off-later', value: ping('for-off') }])
  await arrived('/removed', 'for-removed')
  await arrived('/off-later', 'for-off')
  const changed = await sluice.worker.untilLogged('the catalog has changed', () =>
    sluice.recatalog([destination('up'), destination('off-later', { state: 'off' })]),
  )
  const dead = await sluice.read('dead-letters', 2)
  const reasons = Object.fromEntries(dead.map(({ key, headers }) => [key, headers['reason']]))
  expect(reasons).toEqual({ removed: 'destination_removed', 'off-later': 'destination_off' })
  expect(changed).toMatchObject({
    changes: {
      destinations: expect.arrayContaining(['-paused', '-removed', 'off-later: on → off']),
      sources: expect.arrayContaining(['-paused', '-removed']),
    },
  })
  expect(
    await until('the dead letters of the removed one are told', () =>
      sluice.worker.log.find(({ msg }) => msg.startsWith('the catalog has no such destination: ')),
    ),
  ).toMatchObject({ destination: 'removed', deadLetters: 1 })
})

test('a removed destination for which deliveries wait is told with their number', async () => {
  const count = 20
  sluice.recatalog([destination('up'), destination('slow', { maxInFlight: 1 })])
  await until('it is in force', () =>
    sluice.worker.log.some(({ changes }) => JSON.stringify(changes)?.includes('"+slow"')),
  )
  await sluice.send(
    'slow',
    Array.from({ length: count }, (_, i) => ({ value: ping(`waiting-${i}`) })),
  )
  await arrived('/slow', 'waiting-1')
  sluice.recatalog([destination('up')])
  const line = await until('they are told', () =>
    sluice.worker.log.find(({ msg }) =>
      msg.startsWith('destinations were removed for which deliveries wait'),
    ),
  )
  const told = Number(Object(line['waiting'])['slow'])
  expect(line).toMatchObject({ level: 'warn', destinations: 1 })
  expect(told).toBeGreaterThan(0)
  await until('all are over', async () => (await sluice.worker.metric('sluice_held_records')) === 0)
  const dead = await sluice.worker.metric('sluice_dead_letters_total', { reason: 'destination_removed' })
  // One of them is of the test before.
  expect(dead - 1).toBeGreaterThanOrEqual(told)
  expect(server.requestsTo('/slow').length).toBeLessThan(count)
})

test('a removed destination is told with the number that waits in its queue, where nothing of it is in memory', async () => {
  sluice.recatalog([destination('up'), destination('put-off', { state: 'paused' })])
  await until('it is in force', () =>
    sluice.worker.log.some(({ changes }) => JSON.stringify(changes)?.includes('"+put-off"')),
  )
  await sluice.send(
    'put-off',
    Array.from({ length: 5 }, (_, index) => ({ value: ping(`queued-${index}`) })),
  )
  await until('they wait', async () => (await sluice.worker.metric('sluice_waiting_messages')) >= 5)
  await until('none is held', async () => (await sluice.worker.metric('sluice_held_records')) === 0)
  sluice.recatalog([destination('up')])
  const told = await until('it is told', () =>
    sluice.worker.log.find(({ waiting }) => Object(waiting)['put-off'] !== undefined),
  )
  expect(told).toMatchObject({ level: 'warn', waiting: { 'put-off': 5 } })
  expect(server.requestsTo('/put-off')).toHaveLength(0)
})

test('a faulty edit is refused as a whole, and the catalog before stays in force until it is repaired', async () => {
  sluice.recatalog([destination('up')])
  const inForce = () => sluice.worker.metric('sluice_catalog_destinations')
  const refused = () => sluice.worker.metric('sluice_catalog_refused')
  await until('one destination is in force', async () => (await inForce()) === 1)

  sluice.recatalog([destination('new'), destination('faulty', { hooks: [{ url: 'ftp://example.com/' }] })])
  await until('the edit is refused', async () => (await refused()) === 1)
  expect(await inForce()).toBe(1)
  await sluice.send('up', [{ value: ping('despite-the-fault') }])
  await arrived('/up', 'despite-the-fault')

  sluice.recatalog([destination('up'), destination('new')])
  await until('the repaired one is in force', async () => (await inForce()) === 2)
  expect(await refused()).toBe(0)
})

test('an edit that lowers a cap on requests in flight lets none of them wait for a connection until its time is up', async () => {
  const count = 60
  sluice.recatalog([destination('slow', { maxInFlight: 20 })])
  await until('it is in force', async () => (await sluice.worker.metric('sluice_catalog_destinations')) === 1)
  await sluice.send(
    'slow',
    Array.from({ length: count }, (_, i) => ({ value: ping(`slow-${i}`) })),
  )
  await until('the first are under way', () => came().length > 0)
  sluice.recatalog([destination('slow', { maxInFlight: 2 })])
  await until('all have come', () => came().length >= count)
  await until('all are over', async () => (await sluice.worker.metric('sluice_held_records')) === 0)
  expect(
    await sluice.worker.metric('sluice_attempts_total', { destination: 'slow', outcome: 'timeout' }),
  ).toBe(0)
  expect(came()).toHaveLength(count)
})
