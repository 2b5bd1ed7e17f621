import { afterAll, beforeAll, expect, test } from 'vitest'
import { answer, type Receiver, type Script, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { runSluice, startSluice } from '../../support/worker-process.ts'
import { type Deployment, type DestinationEntry, deploy } from './deployment.ts'

/** Messages that wait on the retry topics after failed tries, on rungs of ten minutes, and are called back. */

const count = 100
const rung = 'retry.10m'

let server: Receiver
let sluice: Deployment
let isRepaired = false
let isUp = false
/**
 * How long the hooks take in the middle of whose recall a worker joins or restarts, in milliseconds: so long that the
 * recall isn't over before, on a busy machine too.
 */
let joinedMs = 1_500
let slowMs = 1_000
/** How many messages the flapping hook accepts before it is down again. */
let taken = 0
/** The ids of the messages that the flapping hook has accepted. */
const acceptedFlapping: string[] = []
const acceptedRecovered: string[] = []
let catalog: DestinationEntry[]

beforeAll(async () => {
  server = await startReceiver({
    '/repaired': (request, response, nth) => answer(isRepaired ? 200 : 500)(request, response, nth),
    '/other': answer(500),
    '/single': (request, response, nth) => answer(isRepaired ? 200 : 500)(request, response, nth),
    '/wrong': answer(500),
    '/right': answer(200),
    '/resumed': (request, response, nth) => answer(isRepaired ? 200 : 500)(request, response, nth),
    '/slow': slowly,
    '/joined': (request, response, nth) =>
      void setTimeout(
        () => answer(isRepaired ? 200 : 500)(request, response, nth),
        isRepaired ? joinedMs : 0,
      ),
    '/dead': answer(500),
    '/recovers': (request, response, nth) => {
      if (isUp) acceptedRecovered.push(JSON.parse(request.body.toString()).messageId)
      answer(isUp ? 200 : 500)(request, response, nth)
    },
    '/flaps': (request, response, nth) => {
      const isTaken = taken-- > 0
      if (isTaken) acceptedFlapping.push(JSON.parse(request.body.toString()).messageId)
      answer(isTaken ? 200 : 500)(request, response, nth)
    },
  })
  catalog = ['repaired', 'other', 'single', 'resumed', 'dead', 'flaps'].map((id) => to(id))
  catalog.push(to('edited', '/wrong'), to('joined', '/joined', { maxInFlight: 2 }))
  catalog.push(to('slow', '/slow', { maxInFlight: 5 }))
  sluice = await deploy({
    destinations: catalog,
    variables: { SLUICE_RETRY_LADDER: '10m', SLUICE_RETRY_THEN: '10m', SLUICE_DELIVERY_TIMEOUT: '20s' },
  })
})

afterAll(async () => {
  await sluice?.stop()
  await server?.stop()
})

/** Answers after a while once the endpoints are repaired, and fails at once before. */
const slowly: Script = (request, response, nth) =>
  void setTimeout(() => answer(isRepaired ? 200 : 500)(request, response, nth), isRepaired ? slowMs : 0)

function to(id: string, path = `/${id}`, rest: Partial<DestinationEntry> = {}): DestinationEntry {
  return { id, sources: [id], hooks: [{ id: 'main', url: server.origin + path }], ...rest }
}

/** Replaces a destination in the catalog, and waits until the worker knows it. */
async function edit(destination: DestinationEntry): Promise<void> {
  catalog = catalog.map((one) => (one.id === destination.id ? destination : one))
  await sluice.worker.untilLogged('the catalog has changed', () => sluice.recatalog(catalog))
}

function messages(name: string, howMany = count) {
  return Array.from({ length: howMany }, (_, index) => ({
    key: `user-${index % 20}`,
    value: { type: 'track', userId: `user-${index % 20}`, event: 'Ping', messageId: `${name}-${index}` },
  }))
}

function idsAt(path: string): string[] {
  return server.requestsTo(path).map(({ body }) => JSON.parse(body.toString()).messageId)
}

/** Waits until all messages of a destination wait on the rung, and returns the number of its requests. */
async function parked(name: string, path = `/${name}`, howMany = count): Promise<number> {
  const isOf = ({ value }: { value: Buffer | null }): boolean => String(value).includes(`${name}-`)
  await until(`all of ${name} wait`, async () => (await sluice.read(rung)).filter(isOf).length >= howMany)
  return server.requestsTo(path).length
}

/** Returns how many requests there were from the request number `from` on, and for how many messages. */
function tally(path: string, from: number): { requests: number; messages: number } {
  const ids = idsAt(path).slice(from)
  return { requests: ids.length, messages: new Set(ids).size }
}

const eachOnce = { requests: count, messages: count }

function retryNow(...args: string[]) {
  return runSluice(['destinations', 'retry-now', ...args], sluice.settings)
}

test('after a repair, retry-now delivers all that waits at once and not after ten minutes, and none twice, also after a planned restart', async () => {
  await sluice.send('repaired', messages('repaired'))
  await sluice.send('other', messages('other'))
  const before = await parked('repaired')
  const others = await parked('other')
  isRepaired = true
  const { stdout } = await retryNow('repaired')
  expect(stdout).toContain('repaired  what waits for a retry is tried now')
  await until('all came', () => server.requestsTo('/repaired').length >= before + count)
  await sluice.worker.terminate()
  await sluice.restart()
  await sluice.send('repaired', messages('later', 1))
  await until('a later message came', () => idsAt('/repaired').includes('later-0'))
  await retryNow('repaired')
  await until('the order was read', () =>
    sluice.worker.log.some(({ msg }) => msg === 'messages that wait for a retry are called back'),
  )
  await sluice.send('repaired', messages('last', 1))
  await until('a last message came', () => idsAt('/repaired').includes('last-0'))
  expect(idsAt('/repaired').filter((id) => id.startsWith('repaired-')).length).toBe(before + count)
  expect(server.requestsTo('/other').length).toBe(others)
})

test('a planned restart in the middle of a recall goes on with it, and repeats nothing', async () => {
  isRepaired = false
  await sluice.send('slow', messages('slow'))
  const before = await parked('slow')
  isRepaired = true
  await retryNow('slow')
  await until('some came', () => server.requestsTo('/slow').length >= before + 10)
  await sluice.worker.terminate()
  expect(server.requestsTo('/slow').length).toBeLessThan(before + count)
  slowMs = 50
  await sluice.restart()
  await until('all came', () => server.requestsTo('/slow').length >= before + count)
  expect(tally('/slow', before)).toEqual(eachOnce)
})

test('a worker that joins in the middle of a recall goes on with it in its partitions, and repeats nothing', async () => {
  isRepaired = false
  await sluice.send('joined', messages('joined'))
  const before = await parked('joined')
  isRepaired = true
  await retryNow('joined')
  await until('some came', () => server.requestsTo('/joined').length >= before + 4)
  // The recall must not be over before the second worker has its partitions.
  const second = await startSluice(sluice.settings)
  joinedMs = 100
  try {
    await until('all came', () => server.requestsTo('/joined').length >= before + count)
    expect(await second.metric('sluice_records_total', { topic: rung })).toBeGreaterThan(0)
  } finally {
    await second.terminate()
  }
  expect(tally('/joined', before)).toEqual(eachOnce)
})

test('one message is called back alone', async () => {
  isRepaired = false
  await sluice.send('single', messages('single', 20))
  const before = await parked('single', '/single', 20)
  isRepaired = true
  await retryNow('single', '--message-id', 'single-7')
  await until('it came', () => server.requestsTo('/single').length > before)
  await sluice.send('single', messages('after-single', 1))
  await until('a later message came', () => idsAt('/single').includes('after-single-0'))
  expect(
    idsAt('/single')
      .slice(before)
      .filter((id) => id !== 'after-single-0'),
  ).toEqual(['single-7'])
})

test('an edit of the URL delivers what waits', async () => {
  await sluice.send('edited', messages('edited'))
  await parked('edited', '/wrong')
  await edit(to('edited', '/right'))
  await until('all came', () => server.requestsTo('/right').length >= count)
  expect(tally('/right', 0)).toEqual(eachOnce)
})

test('a destination that was paused and is on again gets what waits for a retry', async () => {
  isRepaired = false
  await sluice.send('resumed', messages('resumed'))
  const before = await parked('resumed')
  await edit(to('resumed', '/resumed', { state: 'paused' }))
  isRepaired = true
  await edit(to('resumed'))
  await until('all came', () => server.requestsTo('/resumed').length >= before + count)
  expect(tally('/resumed', before)).toEqual(eachOnce)
})

test('an endpoint that is still down gets a few requests, and the rest keeps its rung', async () => {
  await sluice.send('dead', messages('dead'))
  const before = await parked('dead')
  const runs = () =>
    sluice.worker.log.filter(
      ({ msg, destination }) => msg === 'messages were called back' && destination === 'dead',
    )
  await retryNow('dead')
  const [end] = await until('it is over', () => (runs().length > 0 ? runs() : undefined))
  expect(end).toMatchObject({ hasFailed: true })
  const tried = server.requestsTo('/dead').length - before
  expect(tried).toBeGreaterThan(0)
  expect(tried).toBeLessThanOrEqual(4)
})

test('a hook that flaps while its messages are called back again and again gets no message twice', async () => {
  await sluice.send('flaps', messages('flaps'))
  const before = await parked('flaps')
  const ended = () =>
    sluice.worker.log.filter(
      ({ msg, destination }) => msg === 'messages were called back' && destination === 'flaps',
    )
  const asked = () => ended().filter(({ cause }) => cause === 'asked')
  const takenAtOnce = 10
  for (let round = 1; round <= 6; round++) {
    taken = round % 2 === 0 ? takenAtOnce : 0
    await retryNow('flaps')
    await until('the recall is over', () => asked().length >= round)
    expect(asked().at(-1)).toMatchObject({ hasFailed: true })
  }
  // A recall begins with four tries, and each success makes room for one more. What is under way when the hook goes
  // down fails.
  const mostFailed = 4 * ended().length + 3 * takenAtOnce
  taken = Infinity
  await until('all came', async () => {
    await retryNow('flaps')
    return new Set(acceptedFlapping).size >= count
  })
  expect(acceptedFlapping.length).toBe(count)
  expect(server.requestsTo('/flaps').length - before - count).toBeLessThanOrEqual(mostFailed)
})

test('the first successes of an endpoint that was down bring what waits on a long rung', async () => {
  isUp = false
  const quick = await deploy({
    destinations: [to('recovers')],
    variables: {
      SLUICE_RETRY_LADDER: '2s,10m',
      SLUICE_RETRY_THEN: '10m',
      SLUICE_BREAKER_MAX_OPEN_FOR: '5s',
    },
  })
  try {
    await quick.send('recovers', messages('recovers'))
    await until('all wait', async () => (await quick.read(rung)).length >= count)
    // The hook fails for as long again.
    await quick.send('recovers', messages('later', 5))
    await until('these wait too', async () => (await quick.read(rung)).length >= count + 5)
    isUp = true
    let sent = 0
    await until(
      'all came',
      async () => {
        await quick.send('recovers', messages(`new-${sent++}`, 5))
        return new Set(acceptedRecovered.filter((id) => id.startsWith('recovers-'))).size >= count
      },
      { everyMs: 500 },
    )
    const old = acceptedRecovered.filter((id) => id.startsWith('recovers-'))
    expect(old.length).toBe(count)
  } finally {
    await quick.stop()
  }
})
