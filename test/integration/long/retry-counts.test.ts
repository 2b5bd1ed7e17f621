import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Deployment, deploy } from '../delivery/deployment.ts'
import { otherProgram } from '../../support/kafka.ts'
import { answer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { applyTopics, runSluice, type SluiceProcess, startSluice } from '../../support/worker-process.ts'

/**
 * The counts of what waits for its next try, while workers come, go and are killed, what waits is called
 * back, and a retry topic is made anew. A count that is once wrong would stay wrong.
 */

const rung = 'retry.10m'
const timeoutMs = 420_000
const ids = ['a', 'b', 'c']

let server: Receiver
let sluice: Deployment

beforeAll(async () => {
  server = await startReceiver({ '/down': answer(500) })
  sluice = await deploy({
    destinations: ids.map((id) => ({
      id,
      sources: [id],
      hooks: [{ id: 'main', url: `${server.origin}/down` }],
    })),
    variables: {
      SLUICE_RETRY_LADDER: '10m',
      SLUICE_RETRY_THEN: '10m',
      SLUICE_KAFKA_SESSION_TIMEOUT: '6s',
    },
  })
})

afterAll(async () => {
  await sluice?.stop()
  await server?.stop()
})

let sent = 0

async function send(id: string, howMany: number): Promise<void> {
  await sluice.send(
    id,
    Array.from({ length: howMany }, () => {
      const userId = `user-${sent++}`
      return { key: userId, value: { type: 'track', userId, event: 'Ping' } }
    }),
  )
}

/** How many messages of each destination wait, at least and at most. */
async function counted(): Promise<Record<string, unknown>> {
  const { stdout } = await runSluice(['destinations', 'list', '--json'], sluice.settings)
  const all: { id: string; health: Record<string, unknown> }[] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  return Object.fromEntries(all.map(({ id, health }) => [id, [health['retrying'], health['retryingAtMost']]]))
}

const exactly = (counts: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(counts).map(([id, count]) => [id, [count, count]]))

/** Waits until the counts are these, and returns what they are then, or after a while. */
async function countedAs(counts: object): Promise<object> {
  let last: object = {}
  await until(
    'all is counted',
    async () => {
      last = await counted()
      return isDeepStrictEqual(last, counts)
    },
    { timeoutMs: 90_000 },
  ).catch(() => undefined)
  return last
}

test('workers that come, go and are killed leave no count wrong', { timeout: timeoutMs }, async () => {
  const waiting = { a: 0, b: 0, c: 0 }
  let second: SluiceProcess | undefined
  for (let round = 0; round < 4; round++) {
    const sends = (['a', 'b', 'c'] as const).map((id, index) => {
      const howMany = 7 * (round + 1) + index
      waiting[id] += howMany
      return send(id, howMany)
    })
    // The partitions move while the messages come and fail.
    if (second === undefined) second = await startSluice(sluice.settings)
    else {
      await (round === 1 ? second.kill() : second.terminate())
      second = undefined
    }
    await Promise.all(sends)
    // What is called back while it moves fails again, and waits again.
    if (round === 2) await runSluice(['destinations', 'retry-now', 'b'], sluice.settings)
  }
  await second?.terminate()
  expect(await countedAs(exactly(waiting))).toEqual(exactly(waiting))
  await runSluice(['destinations', 'drop', 'a', '--waiting', '--yes'], sluice.settings)
  expect(await countedAs(exactly({ ...waiting, a: 0 }))).toEqual(exactly({ ...waiting, a: 0 }))
  await sluice.worker.kill()
  await sluice.restart()
  expect(await countedAs(exactly({ ...waiting, a: 0 }))).toEqual(exactly({ ...waiting, a: 0 }))
})

test(
  'a retry topic that is made anew is counted from its beginning, and nothing of the former one stays',
  { timeout: timeoutMs },
  async () => {
    const topic = sluice.prefix + rung
    const admin = otherProgram().admin()
    await admin.connect()
    try {
      await admin.deleteTopics({ topics: [topic] })
      await until('it is gone', async () => !(await admin.listTopics()).includes(topic))
    } finally {
      await admin.disconnect()
    }
    await applyTopics(sluice.settings)
    expect(await countedAs(exactly({ a: 0, b: 0, c: 0 }))).toEqual(exactly({ a: 0, b: 0, c: 0 }))
    await send('c', 11)
    expect(await countedAs(exactly({ a: 0, b: 0, c: 11 }))).toEqual(exactly({ a: 0, b: 0, c: 11 }))
    const second = await startSluice(sluice.settings)
    try {
      await send('a', 5)
      expect(await countedAs(exactly({ a: 5, b: 0, c: 11 }))).toEqual(exactly({ a: 5, b: 0, c: 11 }))
    } finally {
      await second.kill()
    }
    expect(await countedAs(exactly({ a: 5, b: 0, c: 11 }))).toEqual(exactly({ a: 5, b: 0, c: 11 }))
  },
)
