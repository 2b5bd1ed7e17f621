import { describe, expect, test } from 'vitest'
import { judging } from '../../../bench/refusals/costs.ts'
import { knownRequests } from '../../../bench/refusals/hostile-requests.ts'
import { cpuOfAll } from '../../../bench/refusals/worst-case.ts'
import { harmfulBodies } from '../../support/harmful-bodies.ts'
import { ordinaryMs } from '../../support/ordinary-body.ts'
import { Random } from '../../support/random.ts'
import { trackingOf } from '../../support/tracking.ts'

/**
 * The most CPU time that a body may cost. The unit is the time that it takes to parse an ordinary body of
 * half a megabyte and to write it again.
 */
const mostBodies = 60
/**
 * The number of tries, of which the cheapest counts. Each try has the cost of the body, but not each has the
 * cost of compiling the code.
 */
const tries = 6

const source = {
  id: 'shop',
  name: 'shop',
  kind: 'events' as const,
  enabled: true,
  writeKeys: ['KEY'],
  serverKeys: [],
  maxPerSecond: undefined,
}
const tracking = trackingOf({ sources: [source], ackTimeoutMs: 1_500, bufferBytes: 2 ** 30 })
let clients = 0

/** Returns the CPU time of this thread, in milliseconds, until the request waits for Kafka or is answered. */
async function costMs(body: Buffer): Promise<number> {
  // Each try is another client. Otherwise the budget of refused requests would be used up.
  const client = { address: `client ${clients++}`, ip: '203.0.113.7' }
  const before = process.threadCpuUsage()
  const answer = tracking.handle('batch', Buffer.from(body), 'Bearer KEY', client)
  const { user, system } = process.threadCpuUsage(before)
  expect([200, 400]).toContain((await answer).status)
  return (user + system) / 1_000
}

describe('no more CPU than 60 ordinary bodies would take is what the gateway needs for', () => {
  test.each(harmfulBodies())('$name', async ({ body }) => {
    let least = Infinity
    for (let tried = 0; tried < tries && least >= mostBodies / 2; tried++) {
      // This is measured right before the request.
      const ordinary = ordinaryMs()
      least = Math.min(least, (await costMs(body)) / ordinary)
    }
    expect(least).toBeLessThan(mostBodies)
  })
})

/** The most that a request of 2 KB may cost, measured over this number of copies. */
const mostBodiesOfShort = 8
const copies = 8

const short = knownRequests().filter(({ name }) =>
  /^gzip of (?:512|16) KB, .* (?:as messages|as members of the body, without a key)$/.test(name),
)

describe('no more than eight ordinary bodies costs a request of 2 KB:', () => {
  const judge = judging()
  const random = new Random(1)

  test.each(short)('$name', (of) => {
    const body = of.make(random)
    let least = Infinity
    for (let tried = 0; tried < 3 && least > mostBodiesOfShort; tried++) {
      const inputs = Array.from({ length: copies }, () => Buffer.from(body))
      const ms = cpuOfAll(inputs, (input) => judge(input, of))
      least = Math.min(least, ms / ordinaryMs(copies))
    }
    expect(least).toBeLessThan(mostBodiesOfShort)
  })
})

/** The most that 2 KB of gzip may cost whose 500 KB would have to be respelled. Even to weigh all of them costs more. */
const mostBodiesOfRespelled = 2

const respelled = knownRequests().filter(({ name }) =>
  /^gzip of 512 KB, (?:\[\]|\{\}|1e20|NaN|a space) in a (?:second list|list with an escape in its name)$/.test(
    name,
  ),
)

describe('no more than two ordinary bodies costs a request of 2 KB that is too dense to be respelled:', () => {
  const judge = judging()
  const random = new Random(1)

  test.each(respelled)('$name', (of) => {
    const body = of.make(random)
    let least = Infinity
    for (let tried = 0; tried < tries && least > mostBodiesOfRespelled; tried++) {
      const inputs = Array.from({ length: copies }, () => Buffer.from(body))
      const ms = cpuOfAll(inputs, (input) => judge(input, of))
      least = Math.min(least, ms / ordinaryMs(copies))
    }
    expect(least).toBeLessThan(mostBodiesOfRespelled)
  })

  test('there are such requests', () => {
    expect(respelled).toHaveLength(10)
  })
})

/** The most that 2 KB of gzip may cost whose 500 KB are texts that no message has room for. */
const mostBodiesOfTexts = 0.8

const textual = new Set([
  'gzip of a text of 500 KB',
  'gzip of 512 KB, a text of 1 KB in a message',
  'gzip of 512 KB, a text of 1 KB in an alias',
  'gzip of escapes',
])

describe('less than an ordinary body costs a request of 2 KB with more text than a message may have:', () => {
  const judge = judging()
  const random = new Random(1)
  const requests = knownRequests().filter(({ name }) => textual.has(name))

  test.each(requests)('$name', (of) => {
    const body = of.make(random)
    let least = Infinity
    for (let tried = 0; tried < tries && least > mostBodiesOfTexts; tried++) {
      const inputs = Array.from({ length: copies }, () => Buffer.from(body))
      const ms = cpuOfAll(inputs, (input) => judge(input, of))
      least = Math.min(least, ms / ordinaryMs(copies))
    }
    expect(least).toBeLessThan(mostBodiesOfTexts)
  })

  test('there are such requests', () => {
    expect(requests).toHaveLength(textual.size)
  })
})
