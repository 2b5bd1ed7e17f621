import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { produce } from '../../support/kafka.ts'
import { answer, neverAnswer, type Receiver, type Script, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type Deployment, deploy } from './deployment.ts'

/**
 * Tests that hooks which fail, or ask for fewer requests, still get their requests. The ladder has waits of 1
 * s and then 2 s, and ends after 12 s.
 */

const messages = 200
const everyMs = 50

const failsAtFirst: Script = (request, response, nth) => answer(nth <= 60 ? 500 : 200)(request, response, nth)

/**
 * Asks for a pause of a second at each 40th request. If it did at every request, how many requests it gets would
 * be a race between its answers and the next requests.
 */
const asksForLess: Script = (request, response, nth) =>
  (nth % 40 === 1 ? answer(429, { 'retry-after': '1' }) : answer(200))(request, response, nth)

const scripts: Record<string, Script> = {
  '/well': answer(200),
  '/asks-for-less': asksForLess,
  '/broken': answer(500),
  '/down': answer(500),
  '/silent': neverAnswer,
  '/recovers': failsAtFirst,
}

let server: Receiver
let sluice: Deployment

const pathsOf: Record<string, readonly string[]> = {
  three: ['/well', '/asks-for-less', '/broken'],
  down: ['/down'],
  silent: ['/silent'],
  recovers: ['/recovers'],
}

beforeAll(async () => {
  server = await startReceiver(scripts)
  sluice = await deploy({
    destinations: Object.entries(pathsOf).map(([id, paths]) => ({
      id,
      sources: [id],
      hooks: paths.map((path) => ({ id: path.slice(1), url: server.origin + path })),
      // Only what never answers is given up: the others may take their time on a busy machine.
      ...(id === 'silent' && { timeout: '500ms' }),
    })),
    variables: {
      SLUICE_RETRY_LADDER: '1s',
      SLUICE_RETRY_THEN: '2s',
      SLUICE_RETRY_LIMIT: '12s',
      SLUICE_DELIVERY_TIMEOUT: '20s',
      SLUICE_METRICS_PER_DESTINATION: 'true',
    },
  })
  for (let sent = 0; sent < messages; sent++) {
    await produce(
      `${sluice.prefix}events`,
      Object.keys(pathsOf).map((id) => ({
        key: `${sent}`,
        headers: { 'source-id': id },
        value: JSON.stringify({ type: 'track', event: 'e', userId: 'u', messageId: `${id}-${sent}` }),
      })),
    )
    await delay(everyMs)
  }
})

afterAll(async () => {
  await sluice.stop()
  await server.stop()
})

/** Returns how often each message arrived at a path. */
function timesAt(path: string): ReadonlyMap<string, number> {
  const times = new Map<string, number>()
  for (const { body } of server.requestsTo(path)) {
    const { messageId } = JSON.parse(body.toString())
    times.set(messageId, (times.get(messageId) ?? 0) + 1)
  }
  return times
}

/** Waits until `count` deliveries to this destination have ended. */
async function ended(destination: string, count = messages): Promise<void> {
  await until(
    `all of ${destination} have ended`,
    async () => (await sluice.worker.metric('sluice_deliveries_total', { destination })) === count,
    { timeoutMs: 60_000 },
  )
}

test.each(['/asks-for-less', '/broken'])(
  'beside a URL that takes all, %s gets nearly every message too, and each once',
  async (path) => {
    await ended('three')
    await until(`${path} has most`, () => timesAt(path).size >= messages * 0.95)
    expect([...timesAt(path).values()].every((times) => times === 1)).toBe(true)
    expect(timesAt('/well').size).toBe(messages)
  },
)

test('a message that one URL takes is settled at once, whatever becomes of the others', async () => {
  await ended('three')
  const delivered = sluice.worker.log.filter((line) => line['hook'] === 'well')
  const late = delivered.filter((line) => {
    const request = server
      .requestsTo('/well')
      .find(({ body }) => body.includes(JSON.stringify(line['messageId'])))
    return request === undefined || Date.parse(String(line['time'])) - request.atMs > 500
  })
  // If they waited for the others, all of them would be late, and not only those of a moment in which the machine stood still.
  expect(late.length).toBeLessThan(messages / 2)
  const parked = await sluice.read('retry.1s')
  expect(parked.filter(({ headers }) => headers['destination-id'] === 'three')).toEqual([])
})

test.each(['down', 'silent'])(
  'every message for a URL that is %s is tried when it comes and once more at the end, and ends as expired with what to do',
  async (id) => {
    await ended(id)
    const times = [...timesAt(`/${id}`).values()]
    expect(times.length).toBe(messages)
    expect(times.every((count) => count >= 2)).toBe(true)
    const letters = await until('all dead letters are written', async () => {
      const written = await sluice.read('dead-letters')
      const own = written.filter(({ headers }) => headers['destination-id'] === id)
      return own.length < messages ? undefined : own
    })
    expect(letters).toHaveLength(messages)
    for (const { headers } of letters) {
      expect(headers).toMatchObject({ reason: 'expired' })
      expect(headers['detail']).toMatch(
        /^no URL took it within 12s: \d tries, the last: (status 500|timeout)\. .+ send it again\.$/,
      )
    }
  },
)

test('while requests to failing URLs are few, a URL that is down also gets the tries in between', async () => {
  await ended('down')
  // Without them, each message would have two tries.
  expect(server.requestsTo('/down').length).toBeGreaterThan(messages * 3)
})

test('a URL that recovers takes all that it had missed', async () => {
  await ended('recovers')
  const taken = server.requestsTo('/recovers').slice(60)
  const ids = new Set(taken.map(({ body }) => JSON.parse(body.toString()).messageId))
  expect(ids.size).toBe(messages)
})
