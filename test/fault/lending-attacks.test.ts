import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Scene, setScene } from '../e2e/scene.ts'
import { produce } from '../support/kafka.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import type { SluiceProcess } from '../support/sluice-process.ts'
import { until } from '../support/until.ts'
import { type CatalogData, startSluice } from '../support/worker-process.ts'

/** Workers that lend each other their parts of a rate limit, while they are killed, wrong, many, or edited. */

const partitions = 10
const burst = 2
/** A window in which a worker with its own part of the rate sends clearly fewer than one with nearly all of it. */
const shortMs = 2_000
/** On a busy machine, requests of this time may arrive together. */
const lateSeconds = 2

let receiver: Receiver
let scene: Scene
let sent = 0
const workers: SluiceProcess[] = []

function limited(id: string, rate: number | undefined) {
  return {
    id,
    sources: ['shop'],
    hooks: [{ url: `${receiver.origin}/limited`, headers: { 'X-To': id } }],
    ...(rate !== undefined && { rateLimit: { perSecond: rate, burst } }),
  }
}

/** `second`: the rate of a second destination at the same URL. */
function catalogOf(perSecond: number | undefined, second?: number): CatalogData {
  return {
    sources: [{ id: 'shop' }],
    destinations: [limited('crm', perSecond), ...(second === undefined ? [] : [limited('mail', second)])],
  }
}

async function open(data: CatalogData): Promise<void> {
  scene = await setScene({
    catalog: data,
    variables: {
      SLUICE_TOPICS_PARTITIONS: String(partitions),
      SLUICE_REPEATS_WINDOW: '0s',
      SLUICE_LOG_ATTEMPTS: 'false',
    },
  })
}

async function join(count: number, variables: Record<string, string> = {}): Promise<void> {
  for (let one = 0; one < count; one++)
    workers.push(await startSluice({ ...scene.variables, ...variables }, { readyMs: 60_000 }))
}

beforeEach(async () => {
  sent = 0
  receiver = await startReceiver(answer(200))
})

afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.kill()))
  await receiver.stop()
  scene.close()
})

/** Sends messages to partitions, of which each has one owner. */
async function send(to: readonly number[], each: number): Promise<void> {
  const messages = to.flatMap((partition) =>
    Array.from({ length: each }, () => ({
      partition,
      key: `user-${partition}`,
      value: JSON.stringify({
        type: 'track',
        userId: `user-${partition}`,
        event: 'Ping',
        messageId: `ping-${sent++}`,
      }),
      headers: { 'source-id': 'shop' },
    })),
  )
  await produce(`${scene.prefix}events`, messages)
}

const all = Array.from({ length: partitions }, (_, partition) => partition)

/** Returns the most requests that came within some time of this length, from `fromMs` on (epoch milliseconds). */
function mostWithin(ms: number, { to, fromMs = 0 }: { to?: string; fromMs?: number } = {}): number {
  const times = receiver.requests
    .filter(({ atMs, headers }) => atMs >= fromMs && (to === undefined || headers['x-to'] === to))
    .map(({ atMs }) => atMs)
  let [most, first] = [0, 0]
  for (const [index, atMs] of times.entries()) {
    while ((times[first] ?? 0) < atMs - ms) first++
    most = Math.max(most, index - first + 1)
  }
  return most
}

function expectWithinRate(perSecond: number, of: { to?: string; fromMs?: number } = {}): void {
  for (const seconds of [5, 10, 20])
    expect(mostWithin(seconds * 1_000, of), `within ${seconds} s`).toBeLessThanOrEqual(
      (seconds + lateSeconds) * perSecond + burst,
    )
}

/**
 * A loan that nobody uses ends after this time, in milliseconds. If a dead or mistaken borrower held up the others,
 * nothing would come for so long.
 */
const loanMs = 4_000

/** Returns the longest time between two requests that followed each other, in milliseconds. */
function longestPauseMs({ fromMs = 0 }: { fromMs?: number } = {}): number {
  const times = receiver.requests.map(({ atMs }) => atMs).filter((atMs) => atMs >= fromMs)
  return times.reduce((longest, atMs, index) => Math.max(longest, atMs - (times[index - 1] ?? atMs)), 0)
}

/** Returns the worker with the most waiting messages, which borrows, and one of the others, which lend. */
async function parties(): Promise<{ borrower: SluiceProcess; lender: SluiceProcess }> {
  const counts = await Promise.all(workers.map((worker) => worker.metric('sluice_waiting_messages')))
  const most = counts.indexOf(Math.max(...counts))
  const [borrower, lender] = [workers[most], workers[most === 0 ? 1 : 0]]
  if (borrower === undefined || lender === undefined) throw new Error('there are two workers')
  return { borrower, lender }
}

/** Returns how many edits of the catalog all workers know. */
function knownEdits(): number {
  return Math.min(
    ...workers.map(({ log }) => log.filter(({ msg }) => msg === 'the catalog has changed').length),
  )
}

async function untilLent(perSecond: number, share: number): Promise<void> {
  const own = perSecond * share * (shortMs / 1_000)
  const fromMs = Date.now()
  const isMore = () => mostWithin(shortMs, { fromMs }) > 1.5 * own
  await until('a worker sends at more than its own rate', isMore, { timeoutMs: 60_000 })
}

/** Resolves when each message has come. Only after a kill may one come twice. */
async function untilAllCame(): Promise<void> {
  await until('all came', () => distinct() >= sent, { timeoutMs: 120_000 })
}

function distinct(): number {
  return new Set(receiver.requests.map(({ body }) => messageIdOf(body))).size
}

function messageIdOf(body: Buffer): unknown {
  return JSON.parse(body.toString()).messageId
}

test('a borrower that is killed with a loan, and its lender that gets all of its load at once, never exceed the rate', async () => {
  const perSecond = 40
  await open(catalogOf(perSecond))
  await join(2)
  await send([0], 1_000)
  await untilLent(perSecond, 1 / 2)
  const { borrower } = await parties()
  // The lender has messages in the same moment.
  await Promise.all([borrower.kill(), send(all, 40)])
  await untilAllCame()
  expect(receiver.requests.length).toBeLessThan(sent + 2 * perSecond)
  expectWithinRate(perSecond)
})

test('a lender that is killed, and one that takes its place, never stop the borrower, and nobody exceeds the rate', async () => {
  const perSecond = 40
  await open(catalogOf(perSecond))
  await join(2)
  await send([0], 1_200)
  await untilLent(perSecond, 1 / 2)
  const { lender } = await parties()
  await lender.kill()
  workers.splice(workers.indexOf(lender), 1)
  await join(1)
  await send(all, 20)
  await untilAllCame()
  expect(receiver.requests).toHaveLength(sent)
  expectWithinRate(perSecond)
  expect(longestPauseMs()).toBeLessThan(loanMs)
})

test('workers that join and leave while parts are lent, as static members too, never exceed the rate', async () => {
  const perSecond = 40
  await open(catalogOf(perSecond))
  const named = (name: string) => join(1, { SLUICE_KAFKA_INSTANCE_ID: name })
  await named('one')
  await named('two')
  await send([0], 2_000)
  await untilLent(perSecond, 1 / 2)
  await join(1)
  await untilLent(perSecond, 1 / 2)
  // It comes back under its name, and the others don't notice that it was gone.
  const { lender } = await parties()
  const name = workers.indexOf(lender) === 0 ? 'one' : 'two'
  await lender.terminate()
  workers.splice(workers.indexOf(lender), 1)
  await named(name)
  await send(all, 20)
  await workers.find((worker) => worker !== lender)?.terminate()
  await untilAllCame()
  expect(receiver.requests).toHaveLength(sent)
  expectWithinRate(perSecond)
})

test('a borrower that stands still for longer than its loan, and a lender that does, never exceed the rate', async () => {
  const perSecond = 40
  await open(catalogOf(perSecond))
  await join(2)
  await send([0], 1_500)
  for (const who of ['borrower', 'lender'] as const) {
    await untilLent(perSecond, 1 / 2)
    const { [who]: frozen } = await parties()
    process.kill(frozen.pid, 'SIGSTOP')
    const stoppedMs = Date.now()
    // The others have something to send meanwhile.
    await send(all, 10)
    await until('the loan is over', () => Date.now() > stoppedMs + loanMs + 1_000)
    process.kill(frozen.pid, 'SIGCONT')
  }
  await untilAllCame()
  expect(distinct()).toBe(sent)
  expectWithinRate(perSecond)
})

test('a rate that is removed while a part of it is lent holds up nothing, and holds again once it is back', async () => {
  const perSecond = 20
  await open(catalogOf(perSecond))
  await join(2)
  await send([0], 1_000)
  await untilLent(perSecond, 1 / 2)
  const before = knownEdits()
  scene.catalog.rewrite(catalogOf(undefined))
  await until('both know that there is no rate', () => knownEdits() > before)
  await until('all came at once', () => distinct() >= sent, { timeoutMs: 20_000 })
  scene.catalog.rewrite(catalogOf(perSecond))
  await until('both know the rate', () => knownEdits() > before + 1)
  const limitedMs = Date.now()
  await send([0], 300)
  await send(all, 10)
  await untilAllCame()
  expect(receiver.requests).toHaveLength(sent)
  expectWithinRate(perSecond, { fromMs: limitedMs })
})

test('workers whose clocks are ten seconds apart lend, and never exceed the rate', async () => {
  const perSecond = 40
  await open(catalogOf(perSecond))
  const code = 'const now = Date.now; Date.now = () => now() + 10_000'
  await join(1)
  await join(1, { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` })
  await send([0], 300)
  await untilLent(perSecond, 1 / 2)
  await send(all, 30)
  await untilAllCame()
  expect(receiver.requests).toHaveLength(sent)
  expectWithinRate(perSecond)
})

test('ten workers of which one has everything, and then each has some, use the rate and never exceed it', async () => {
  const perSecond = 40
  await open(catalogOf(perSecond))
  await join(partitions)
  await send([3], 600)
  // A tenth is its own.
  await untilLent(perSecond, 1 / 3)
  await send(all, 30)
  await untilAllCame()
  expect(receiver.requests).toHaveLength(sent)
  expectWithinRate(perSecond)
})

test('a rate that is lowered while a part of it is lent holds at once, and one that is raised too', async () => {
  await open(catalogOf(60))
  await join(2)
  await send([0], 900)
  await untilLent(60, 1 / 2)
  scene.catalog.rewrite(catalogOf(10))
  await until('both know the edit', () =>
    workers.every(({ log }) => log.some(({ msg }) => msg === 'the catalog has changed')),
  )
  const loweredMs = Date.now()
  await until('some came at the low rate', () => mostWithin(Infinity, { fromMs: loweredMs + 1_000 }) > 100, {
    timeoutMs: 60_000,
  })
  expectWithinRate(10, { fromMs: loweredMs })
  scene.catalog.rewrite(catalogOf(60))
  await untilLent(60, 1 / 2)
  await untilAllCame()
  expect(receiver.requests).toHaveLength(sent)
  expectWithinRate(60)
})

test('two destinations at one URL each keep to their own rate, whatever is lent of the other', async () => {
  await open(catalogOf(30, 10))
  await join(2)
  await send([0], 300)
  await send(all, 10)
  await until('all came', () => receiver.requests.length >= 2 * sent, { timeoutMs: 120_000 })
  expect(receiver.requests).toHaveLength(2 * sent)
  expectWithinRate(30, { to: 'crm' })
  expectWithinRate(10, { to: 'mail' })
  // What one worker has of its own would take twice as long.
  const took = (to: string) => {
    const times = receiver.requests.flatMap(({ atMs, headers }) => (headers['x-to'] === to ? [atMs] : []))
    return (Math.max(...times) - Math.min(...times)) / 1_000
  }
  expect(took('mail')).toBeLessThan((1.5 * sent) / 10)
})
