import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { answer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { runSluice, startSluice } from '../../support/worker-process.ts'
import { type Deployment, type DestinationEntry, deploy } from './deployment.ts'

/** How many messages of each destination wait on the retry topics, as operators see it. */

const rung = 'retry.10m'
let server: Receiver
let sluice: Deployment
let isRepaired = false

beforeAll(async () => {
  server = await startReceiver({
    '/mended': (request, response, nth) => answer(isRepaired ? 200 : 500)(request, response, nth),
    '/down': answer(500),
    '/held': answer(500),
    '/fine': answer(200),
  })
  sluice = await deploy({
    destinations: catalog(),
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

function catalog(stateOfHeld: 'on' | 'paused' = 'on'): DestinationEntry[] {
  return ['mended', 'down', 'held', 'fine'].map((id) => ({
    id,
    sources: [id],
    hooks: [{ id: 'main', url: `${server.origin}/${id}` }],
    ...(id === 'held' && { state: stateOfHeld }),
  }))
}

async function send(name: string, howMany: number): Promise<void> {
  const users = Array.from({ length: howMany }, (_, index) => `user-${index}`)
  await sluice.send(
    name,
    users.map((userId) => ({ key: userId, value: { type: 'track', userId, event: 'Ping' } })),
  )
}

/** How many messages of each destination wait for their next try, at least and at most. */
async function retrying(): Promise<Record<string, readonly [unknown, unknown]>> {
  const { stdout } = await runSluice(['destinations', 'list', '--json'], sluice.settings)
  const all: { id: string; health: Record<string, unknown> }[] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  return Object.fromEntries(
    all.map(({ id, health }) => [id, [health['retrying'], health['retryingAtMost']]] as const),
  )
}

const exactly = (mended: number, down: number, held: number) => ({
  mended: [mended, mended],
  down: [down, down],
  held: [held, held],
  fine: [0, 0],
})

/** Waits until the counts are these, and returns what they are then, or after a while. */
async function countedAs(counts: object): Promise<object> {
  let last: object = {}
  await until(
    'all is counted',
    async () => {
      last = await retrying()
      return isDeepStrictEqual(last, counts)
    },
    // A busy machine needs long until a worker is killed and another has taken over.
    { timeoutMs: 90_000 },
  ).catch(() => undefined)
  return last
}

/** Runs a command until its output is as expected: each command reads anew what a worker tells, maybe late. */
function untilSaid(expected: RegExp, ...args: readonly string[]): Promise<string> {
  return until(`sluice ${args.join(' ')} says ${expected}`, async () => {
    const { stdout } = await runSluice(args, sluice.settings)
    return expected.test(stdout) ? stdout : undefined
  })
}

test('what fails is counted by destination, also after a kill, and with another worker', async () => {
  await send('mended', 30)
  await send('down', 12)
  await send('held', 50)
  await send('fine', 20)
  await until('all wait', async () => (await sluice.read(rung)).length >= 92)
  // The owner knows what it has written.
  expect(await countedAs(exactly(30, 12, 50))).toEqual(exactly(30, 12, 50))
  await sluice.worker.kill()
  await sluice.restart()
  // The next owner has read what the former has left.
  expect(await countedAs(exactly(30, 12, 50))).toEqual(exactly(30, 12, 50))
  const second = await startSluice(sluice.settings)
  try {
    await send('down', 5)
    // Both together know all.
    expect(await countedAs(exactly(30, 17, 50))).toEqual(exactly(30, 17, 50))
  } finally {
    await second.terminate()
  }
  // One has all again.
  expect(await countedAs(exactly(30, 17, 50))).toEqual(exactly(30, 17, 50))
})

test('a paused destination shows what waits for its next try, wherever somebody looks', async () => {
  sluice.recatalog(catalog('paused'))
  const list = ['destinations', 'list', '--state', 'waiting']
  expect(await untilSaid(/\nheld +paused +paused +0 +50 /, ...list)).toMatch(
    /^destination +state +condition +waiting +oldest +sent in +retrying +takes/,
  )
  await untilSaid(
    /condition +paused: paused in the catalog, 50 wait for their next try\n +waiting +0\n +retrying +50\n/,
    'destinations',
    'status',
    'held',
  )
  await untilSaid(/\nheld +paused .*50 wait for their next try/, 'status')
  const preview = await runSluice(
    ['destinations', 'drop', 'held', '--waiting', '--dry-run', '--json'],
    sluice.settings,
  )
  expect(JSON.parse(preview.stdout)).toMatchObject({
    waiting: 0,
    onRetryTopics: 50,
    onRetryTopicsAtMost: 50,
  })
})

test('what is called back, or given up, is counted no more', async () => {
  isRepaired = true
  await runSluice(['destinations', 'retry-now', 'mended'], sluice.settings)
  // It was called back.
  expect(await countedAs(exactly(0, 17, 50))).toEqual(exactly(0, 17, 50))
  await runSluice(['destinations', 'drop', 'held', '--waiting', '--yes'], sluice.settings)
  // It was given up.
  expect(await countedAs(exactly(0, 17, 0))).toEqual(exactly(0, 17, 0))
  // The status counts the same in all, although what was called back or given up is still among what waits.
  await untilSaid(/"retrying":17\b/, 'status', '--json')
  // A next owner finds what was taken early in the commits.
  await sluice.worker.terminate()
  await sluice.restart()
  // The next owner counts the same.
  expect(await countedAs(exactly(0, 17, 0))).toEqual(exactly(0, 17, 0))
})
