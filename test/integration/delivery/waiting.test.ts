import { afterAll, beforeAll, expect, test } from 'vitest'
import { answer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type Deployment, type DestinationEntry, deploy } from './deployment.ts'

/** Messages that only wait for their turn: they join the queue of their destination, and never the ladder. */

let server: Receiver
let sluice: Deployment

beforeAll(async () => {
  server = await startReceiver({
    '/rate': answer(200),
    '/paused': answer(200),
    '/slow': later(500),
    '/again': answer(200),
    '/killed': answer(200),
  })
  sluice = await deploy({
    destinations: all(),
    variables: {
      SLUICE_DELIVERY_LANE_WAIT: '500ms',
      SLUICE_DELIVERY_BUFFER_RECORDS: '500',
      SLUICE_KAFKA_SESSION_TIMEOUT: '6s',
    },
  })
})

afterAll(async () => {
  await sluice?.stop()
  await server?.stop()
})

function later(ms: number) {
  return (_request: unknown, response: { end: () => void }): void => void setTimeout(() => response.end(), ms)
}

function destination(id: string, rest: Partial<DestinationEntry> & { rateLimit?: object } = {}) {
  return { id, sources: [id], hooks: [{ url: `${server.origin}/${id}` }], ...rest }
}

/** The rate limit of `killed`, in messages a second. */
const killedRate = 60

function all(states: { paused?: 'on'; again?: 'on' } = {}): DestinationEntry[] {
  return [
    destination('rate', { rateLimit: { perSecond: 50 }, maxInFlight: 1 }),
    destination('paused', { state: states.paused ?? 'paused', maxInFlight: 1 }),
    destination('again', { state: states.again ?? 'paused', maxInFlight: 1 }),
    destination('slow', { maxInFlight: 20 }),
    destination('killed', { rateLimit: { perSecond: killedRate } }),
  ]
}

function isOf(name: string) {
  return ({ value }: { value: Buffer | null }): boolean => String(value).includes(`${name}-`)
}

function messages(name: string, count: number) {
  return Array.from({ length: count }, (_, index) => ({
    key: `user-${index % 50}`,
    value: { type: 'track', userId: `user-${index % 50}`, event: 'Ping', messageId: `${name}-${index}` },
  }))
}

type Got = { id: string; user: string }

function at(path: string): Got[] {
  return server.requestsTo(path).map(({ body }) => {
    const { messageId, userId } = JSON.parse(body.toString())
    return { id: messageId, user: userId }
  })
}

/** Returns what is wrong if not every message came once, and those of each user in the order of their sending. */
function faultsOf(path: string, name: string, count: number): string[] {
  const came = at(path).filter(({ id }) => id.startsWith(`${name}-`))
  const faults = came.length === count ? [] : [`${came.length} came instead of ${count}`]
  const last = new Map<string, number>()
  for (const { id, user } of came) {
    const number = Number(id.slice(name.length + 1))
    const before = last.get(user) ?? -1
    if (number <= before) faults.push(`${id} came after ${name}-${before}`)
    last.set(user, number)
  }
  return faults
}

test('a burst over the rate limit is delivered at the rate, in order, without a rung of the ladder', async () => {
  const count = 300
  await sluice.send('rate', messages('rate', count))
  await until('all came', () => at('/rate').length >= count)
  const times = server.requestsTo('/rate').map(({ atMs }) => atMs)
  const stretch = 50
  const stretches = times.slice(stretch).map((ms, index) => ms - (times[index] ?? 0))
  // At half of the rate, each stretch would take two seconds. A busy machine makes only some of them longer.
  expect(Math.min(...stretches) / 1_000).toBeLessThan((stretch / 50) * 1.9)
  expect(faultsOf('/rate', 'rate', count)).toEqual([])
  expect(await sluice.read('retry.1m')).toEqual([])
})

test('an endpoint that is only slow gets a burst as fast as it can take it', async () => {
  const count = 400
  await sluice.send('slow', messages('slow', count))
  await until('all came', () => at('/slow').length >= count)
  expect(at('/slow').length).toBe(count)
  expect(await sluice.read('retry.1m')).toEqual([])
})

test('what waits for a paused destination comes within two seconds after it is on, in order', async () => {
  const count = 200
  await sluice.send('paused', messages('paused', count))
  await until('all wait', async () => (await sluice.read('waiting')).filter(isOf('paused')).length >= count)
  expect(at('/paused')).toEqual([])
  sluice.recatalog(all({ paused: 'on' }))
  await until('all came', () => at('/paused').length >= count)
  expect(faultsOf('/paused', 'paused', count)).toEqual([])
})

test('a planned restart delivers what waits, and repeats nothing', async () => {
  const count = 200
  await sluice.send('again', messages('again', count))
  await until('all wait', async () => (await sluice.read('waiting')).filter(isOf('again')).length >= count)
  await sluice.worker.terminate()
  sluice.recatalog(all({ again: 'on' }))
  await sluice.restart()
  await until('all came', () => at('/again').length >= count)
  await sluice.worker.terminate()
  await sluice.restart()
  await sluice.send('slow', messages('later', 1))
  await until('a later message came', () => at('/slow').some(({ id }) => id === 'later-0'))
  expect(faultsOf('/again', 'again', count)).toEqual([])
})

test('a killed worker loses nothing of what waits, and repeats at most what it delivered in the last second', async () => {
  const count = 600
  await sluice.send('killed', messages('killed', count))
  await until('half came', () => at('/killed').length >= count / 2)
  await sluice.worker.kill()
  const before = at('/killed').length
  await sluice.restart()
  await until('all came', () => new Set(at('/killed').map(({ id }) => id)).size >= count)
  const repeated = at('/killed').length - count
  expect(before).toBeLessThan(count)
  // Two seconds of the rate: the time in which marks are collected, and the time that the write takes.
  expect(repeated).toBeLessThanOrEqual(2 * killedRate)
})
