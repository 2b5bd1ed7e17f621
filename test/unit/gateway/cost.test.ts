import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { judging } from '../../../bench/refusals/costs.ts'
import { type HostileRequest, knownRequests, lengthened } from '../../../bench/refusals/hostile-requests.ts'
import { costRatio } from '../../support/cost.ts'
import { harmfulBodies } from '../../support/harmful-bodies.ts'
import { rewriteOrdinaryBody } from '../../support/ordinary-body.ts'
import { Random } from '../../support/random.ts'
import { trackingOf } from '../../support/tracking.ts'

/**
 * Tests of the CPU time that a request costs until it waits for Kafka or is answered. The unit is the time that
 * it takes to parse an ordinary body of half a megabyte and to write it again.
 */

/** The most that a body may cost. */
const mostBodies = 60

const source = {
  id: 'shop',
  name: 'shop',
  kind: 'events' as const,
  enabled: true,
  writeKeys: ['KEY'],
  serverKeys: [],
  maxPerSecond: undefined,
}
const tracking = trackingOf({ sources: [source], ackTimeoutMs: 60_000, bufferBytes: 2 ** 30 })
let clients = 0

function handle(body: Buffer): ReturnType<typeof tracking.handle> {
  // Each request is of another client. Otherwise the budget of refused requests would be used up.
  const client = { address: `client ${clients++}`, ip: '203.0.113.7' }
  return tracking.handle('batch', Buffer.from(body), 'Bearer KEY', client)
}

describe('no more CPU than 60 ordinary bodies would take is what the gateway needs for', () => {
  test.each(harmfulBodies())('$name', async ({ body }) => {
    const answers: ReturnType<typeof handle>[] = []
    const times = costRatio(() => answers.push(handle(body)), rewriteOrdinaryBody, mostBodies)
    for (const { status } of await Promise.all(answers)) expect([200, 400]).toContain(status)
    expect(times).toBeLessThan(mostBodies)
  })
})

const judge = judging()
const random = new Random(1)

/** Returns how many times as much as the unit a request costs. */
function timesOf(of: HostileRequest, most: number): number {
  const body = of.make(random)
  return costRatio(() => judge(Buffer.from(body), of), rewriteOrdinaryBody, most)
}

/** The most that a request of 2 KB may cost. */
const mostBodiesOfShort = 8

const short = knownRequests().filter(({ name }) =>
  /^gzip of (?:512|16) KB, .* (?:as messages|as members of the body, without a key)$/.test(name),
)

describe('no more than eight ordinary bodies costs a request of 2 KB:', () => {
  test.each(short)('$name', (of) => {
    expect(timesOf(of, mostBodiesOfShort)).toBeLessThan(mostBodiesOfShort)
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
  test.each(respelled)('$name', (of) => {
    expect(timesOf(of, mostBodiesOfRespelled)).toBeLessThan(mostBodiesOfRespelled)
  })

  test('there are such requests', () => {
    expect(respelled).toHaveLength(10)
  })
})

/** The most that a request of 2 KB may cost that is expensive in a way that no length tells. */
const mostBodiesOfHidden = 1.5

const hidden = knownRequests().filter(({ name }) =>
  /^gzip of (?:512 KB, a text of (?:lone surrogates|quotation marks|120 KB in 90 levels out of order) (?:as messages|in a second list|in the context)|16 KB, messages that are wrong in their own way as messages|280 KB, a text of lone surrogates as messages)$/.test(
    name,
  ),
)

describe('no more than one and a half ordinary bodies costs a request of 2 KB with many escapes, levels or faults:', () => {
  test.each(hidden)('$name', (of) => {
    expect(timesOf(of, mostBodiesOfHidden)).toBeLessThan(mostBodiesOfHidden)
  })

  test('there are such requests', () => {
    expect(hidden).toHaveLength(11)
  })
})

/** The most that they may cost if zeros behind their end make them 2 KB long. */
const mostBodiesOfLengthened = 5

describe('no more than five ordinary bodies costs a request of 2 KB with all of its allowance:', () => {
  test.each([...hidden, ...respelled].map(lengthened))('$name', (of) => {
    expect(timesOf(of, mostBodiesOfLengthened)).toBeLessThan(mostBodiesOfLengthened)
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
  const requests = knownRequests().filter(({ name }) => textual.has(name))

  test.each(requests)('$name', (of) => {
    expect(timesOf(of, mostBodiesOfTexts)).toBeLessThan(mostBodiesOfTexts)
  })

  test('there are such requests', () => {
    expect(requests).toHaveLength(textual.size)
  })
})

/** The most that a batch may cost whose keys no text had before. Both are measured in another process. */
const mostBodiesOfFresh = 1

test('less than an ordinary body costs a batch with 30 KB for all of its messages, in which each key is new', () => {
  const script = fileURLToPath(new URL('../../support/fresh-keys.ts', import.meta.url))
  const times = JSON.parse(execFileSync(process.execPath, [script], { encoding: 'utf8' }))
  expect(Object.keys(times)).toEqual(['a fresh key', 'a fresh key \\'])
  expect(Object.entries(times).filter(([, one]) => !(Number(one) < mostBodiesOfFresh))).toEqual([])
})
