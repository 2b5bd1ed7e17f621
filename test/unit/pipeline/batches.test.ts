import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Batch } from '../../../src/catalog/features/batch.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { until } from '../../support/until.ts'
import {
  type Destination,
  destinationOf,
  failed,
  refused,
  type Stage,
  stage,
  type StageOptions,
  taken,
  TestRecord,
} from './stage.ts'

/** Tests of a destination with `batch`, on a pipeline with its real lanes. */

const longMs = 1_000_000
const ofThree: Batch = { maxMessages: 3, maxBytes: 100_000, maxWaitMs: longMs, format: 'json' }

function batching(settings: Partial<Destination> = {}): Destination {
  return destinationOf('crm', { sources: ['shop'], batch: ofThree, ...settings })
}

function two(strategy: 'all' | 'failover' = 'all'): Partial<Destination> {
  const hooks = ['one', 'other'].map((id) => ({
    id,
    origin: `https://${id}.example`,
    path: '/',
    headers: [],
  }))
  return { strategy, hooks }
}

function open(settings: Partial<Destination> = {}, options: StageOptions = {}): Stage {
  return stage({ sources: { shop: {} }, destinations: [batching(settings)], ...options })
}

let offset = 0

function send(at: Stage, ...names: string[]): TestRecord[] {
  return names.map((name) => sendOf(at, name))
}

function sendOf(at: Stage, name: string, unit = 2): TestRecord {
  const record = new TestRecord('events', offset++, { partition: unit })
  const value = Buffer.from(JSON.stringify({ type: 'track', event: 'e', userId: 'u', messageId: name }))
  at.pipeline.accept(record, { key: Buffer.from('u'), value, headers: { 'source-id': 'shop' } })
  return record
}

function idsIn(body: string): string[] {
  const messages: { messageId: string }[] = JSON.parse(body)
  return messages.map(({ messageId }) => messageId)
}

/** The batches under way, each by the ids of its messages. */
function underWay({ posted }: Stage): string[] {
  return posted.map(({ body }) => idsIn(body).join(''))
}

function statuses(...list: number[]): Outcome {
  return { kind: 'answer', status: 207, whole: Buffer.from(JSON.stringify(list)) }
}

/** What was written: topic and id of the message. */
function written({ written: records }: Stage): string[] {
  return records.map(({ topic, headers }) => `${topic} ${String(headers['message-id'])}`)
}

describe('a batch', () => {
  test('settles all of its messages when it is accepted', async () => {
    const at = open()
    const records = send(at, 'a', 'b', 'c')
    expect(underWay(at)).toEqual(['abc'])
    expect(records.map(({ settled }) => settled)).toEqual([0, 0, 0])
    await at.answer(taken)
    expect(records.map(({ settled }) => settled)).toEqual([1, 1, 1])
    expect(at.pipeline.held).toEqual({ records: 0, bytes: 0 })
    expect(at.pipeline.inFlight).toBe(0)
  })

  test('that fails is tried again, each message by a record of its own', async () => {
    const at = open()
    const records = send(at, 'a', 'b', 'c')
    await at.answer(failed)
    expect(written(at)).toEqual(['retry.1m a', 'retry.1m b', 'retry.1m c'])
    expect(records.map(({ settled }) => settled)).toEqual([1, 1, 1])
    for (const record of at.written.splice(0)) at.retry(record)
    await at.settle()
    expect(underWay(at)).toEqual(['abc'])
    await at.answer(taken)
    expect(written(at)).toEqual([])
  })

  test('settles each message by its own status', async () => {
    const at = open()
    send(at, 'a', 'b', 'c')
    await at.answer(statuses(200, 400, 503))
    expect(written(at)).toEqual(['dead-letters b', 'retry.1m c'])
    expect(at.written[0]?.headers).toMatchObject({ reason: 'failed_for_good', 'last-outcome': 'status 400' })
    expect(at.told.filter((line) => line.startsWith('delivered'))).toHaveLength(1)
  })

  test('of 207 that does not say which messages were accepted is tried again', async () => {
    const at = open()
    send(at, 'a', 'b', 'c')
    await at.answer(statuses(200, 200))
    expect(written(at)).toEqual(['retry.1m a', 'retry.1m b', 'retry.1m c'])
  })

  test('that is refused is halved until the bad message is alone', async () => {
    const at = open({ batch: { ...ofThree, maxMessages: 4 } })
    send(at, 'a', 'b', 'c', 'd')
    const sent: string[] = []
    while (at.posted.length > 0) {
      const [now = ''] = underWay(at)
      sent.push(now)
      await at.answer(now.includes('c') ? refused : taken)
    }
    expect(sent).toEqual(['abcd', 'ab', 'cd', 'c', 'd'])
    expect(written(at)).toEqual(['dead-letters c'])
    expect(at.pipeline.inFlight).toBe(0)
  })

  test('is as large as its URL was found to take: only the first one is halved', async () => {
    const at = open({ batch: { ...ofThree, maxMessages: 12 } })
    const batchOf12 = 'abcdefghijkl'.split('')
    const sizes = async (): Promise<number[]> => {
      const sent: number[] = []
      while (at.posted.length > 0) {
        const [now = ''] = underWay(at)
        sent.push(now.length)
        await at.answer(now.length > 3 ? { kind: 'answer', status: 413 } : taken)
      }
      return sent
    }
    send(at, ...batchOf12)
    expect(await sizes()).toEqual([12, 6, 3, 3, 6, 3, 3])
    send(at, ...batchOf12.map((name) => name.toUpperCase()))
    expect(await sizes()).toEqual([3])
    expect(written(at)).toEqual([])
  })

  test('with one message that is too large says nothing about the size of the others', async () => {
    const at = open({ batch: { ...ofThree, maxMessages: 8 } })
    const tooLarge: Outcome = { kind: 'answer', status: 413 }
    send(at, ...'abcdefgh'.split(''))
    while (at.posted.length > 0) await at.answer(underWay(at)[0]?.includes('c') ? tooLarge : taken)
    expect(written(at)).toEqual(['dead-letters c'])
    send(at, ...'ABCDEFGH'.split(''))
    expect(underWay(at)).toEqual(['ABCDEFGH'])
    await at.answer(taken)
  })

  test('stops being halved when the server fails: what was not sent again is tried later', async () => {
    const at = open({ batch: { ...ofThree, maxMessages: 4 } })
    send(at, 'a', 'b', 'c', 'd')
    await at.answer(refused)
    await at.answer(failed)
    expect(at.posted).toEqual([])
    expect(written(at)).toEqual(['retry.1m a', 'retry.1m b', 'retry.1m c', 'retry.1m d'])
  })

  test('stops being halved when the worker stops, and loses nothing', async () => {
    const at = open({ batch: { ...ofThree, maxMessages: 4 } })
    const records = send(at, 'a', 'b', 'c', 'd')
    await at.answer(refused)
    const drained = at.pipeline.drain()
    await at.answer(taken)
    await drained
    expect(at.posted).toEqual([])
    expect(written(at)).toEqual(['retry.1m c', 'retry.1m d'])
    expect(records.map(({ settled }) => settled)).toEqual([1, 1, 1, 1])
  })

  test('that still gathers is left to the next owner at once when the worker stops', async () => {
    const at = open()
    const records = send(at, 'a', 'b')
    await at.pipeline.drain()
    expect(at.posted).toEqual([])
    expect(records.map(({ givenBack }) => givenBack)).toEqual([1, 1])
  })

  test('that still gathers is left to the next owner at once when its unit has one', () => {
    const at = open()
    const records = send(at, 'a', 'b')
    for (const record of records) record.isAbandoned = true
    at.pipeline.letGoAbandoned()
    expect(records.map(({ givenBack }) => givenBack)).toEqual([1, 1])
  })

  test('goes to all URLs, and a message is delivered once one of them has accepted it', async () => {
    const at = open(two())
    const records = send(at, 'a', 'b', 'c')
    expect(at.posted.map(({ to }) => to)).toEqual(['one', 'other'])
    const [one, other] = at.posted
    one?.answer(statuses(200, 500, 400))
    await at.settle()
    expect(records.map(({ settled }) => settled)).toEqual([1, 0, 0])
    other?.answer(statuses(500, 500, 200))
    await at.settle()
    expect(written(at)).toEqual(['retry.1m b'])
    expect(records.map(({ settled }) => settled)).toEqual([1, 1, 1])
  })

  test('of messages that know other URLs as failed is not mixed with those that do not', async () => {
    const at = open({ ...two(), batch: { ...ofThree, maxWaitMs: 20 } })
    send(at, 'a', 'b', 'c')
    const [one, other] = at.posted
    one?.answer(statuses(500, 400, 500))
    other?.answer(failed)
    await at.settle()
    for (const record of at.written.splice(0)) at.retry(record)
    await until('all are sent', () => at.posted.length === 5)
    const sent = at.posted.map(({ to, body }) => `${to} ${idsIn(body).join('')}`)
    expect(sent.toSorted()).toEqual(['one a', 'one c', 'other a', 'other b', 'other c'])
  })

  test('goes to the next URL with the messages only that the first one has not accepted', async () => {
    const at = open(two('failover'))
    const records = send(at, 'a', 'b', 'c')
    await at.answer(statuses(200, 500, 400))
    expect(at.posted.map(({ to, body }) => `${to} ${idsIn(body).join('')}`)).toEqual(['other bc'])
    await at.answer(statuses(200, 500))
    expect(written(at)).toEqual(['retry.1m c'])
    expect(records.map(({ settled }) => settled)).toEqual([1, 1, 1])
  })

  test('counts as one request for the breaker of its URL', async () => {
    const breaker = { failureShare: 0.5, minResults: 2, windowMs: 10_000, openMs: 1_000, maxOpenMs: 1_000 }
    const at = open({}, { breaker })
    send(at, 'a', 'b', 'c')
    await at.answer(failed)
    expect(at.pipeline.openHooks()).toEqual([])
    send(at, 'd', 'e', 'f')
    await at.answer(failed)
    expect(at.pipeline.openHooks()).toHaveLength(1)
  })

  test('to a URL that fails goes through the bulkhead as one request, and what waits there is let go alone', async () => {
    const breaker = { failureShare: 0.5, minResults: 1, windowMs: 10_000, openMs: 1_000, maxOpenMs: 1_000 }
    const at = open({}, { breaker })
    send(at, 'a', 'b', 'c')
    await at.answer(failed)
    at.written.splice(0)
    const records = send(at, 'd', 'e', 'f')
    expect(at.posted).toEqual([])
    if (records[1] !== undefined) records[1].isAbandoned = true
    await at.settle()
    expect(underWay(at)).toEqual(['df'])
    expect(records.map(({ givenBack }) => givenBack)).toEqual([0, 1, 0])
    await at.answer(taken)
    expect(records.map(({ settled }) => settled)).toEqual([1, 0, 1])
    expect(at.pipeline.paced).toMatchObject({ inFlight: 0, queued: 0 })
  })

  test('that waits in the bulkhead is left to others only with the messages whose units they own', async () => {
    const breaker = { failureShare: 0.5, minResults: 1, windowMs: 10_000, openMs: 1_000, maxOpenMs: 1_000 }
    const at = open({}, { breaker })
    send(at, 'a', 'b', 'c')
    await at.answer(failed)
    at.written.splice(0)
    const lost = sendOf(at, 'd')
    const stopped = [sendOf(at, 'e', 3), sendOf(at, 'f', 3)]
    lost.isAbandoned = true
    at.pipeline.setUnitStopped(3, true)
    at.pipeline.letGoAbandoned()
    await at.settle()
    expect([lost, ...stopped].map(({ givenBack }) => givenBack)).toEqual([1, 0, 0])
    expect(written(at)).toEqual(['retry.1m e', 'retry.1m f'])
    expect(at.posted).toEqual([])
  })

  test('that the proxy could not take goes back into its lane, and no attempt is counted', async () => {
    const at = open()
    send(at, 'a', 'b', 'c')
    await at.answer({ kind: 'proxy', code: 'ECONNREFUSED', isDown: true })
    expect(written(at)).toEqual([])
    await until('it is sent again', () => at.posted.length > 0)
    expect(idsIn(at.posted[0]?.body ?? '[]').toSorted()).toEqual(['a', 'b', 'c'])
    await at.answer(failed)
    expect(at.written.map(({ headers }) => headers['attempts'])).toEqual(['1', '1', '1'])
  })

  test('has the Identifies of audiences, the newest of each property only', async () => {
    const batch = { ...ofThree, maxMessages: 2 }
    const at = stage({ destinations: [destinationOf('crm', { batch })] })
    at.identify('"one"', { userId: 'u1' })
    at.identify('"two"', { userId: 'u2' })
    expect(at.bodies()).toEqual(['["one","two"]'])
    at.identify('"three"', { userId: 'u1' })
    at.identify('"four"', { userId: 'u1' })
    at.identify('"five"', { userId: 'u3' })
    expect(at.bodies()).toEqual(['["one","two"]'])
    await at.answer(taken)
    expect(at.bodies()).toEqual(['["five","four"]'])
    expect(at.told).toContain('superseded crm "three"')
  })

  test('has no more bytes than it may, also if a mapping makes its messages larger', () => {
    const mappings = [{ body: { note: 'x'.repeat(400) } }]
    const at = open({ mappings, batch: { ...ofThree, maxBytes: 1_024, maxWaitMs: 1 } })
    send(at, 'a', 'b', 'c')
    expect(at.posted.map(({ body }) => body.length <= 1_024)).not.toContain(false)
    const first: unknown = JSON.parse(at.bodies()[0] ?? '')
    expect(first).toHaveLength(2)
  })

  test('is a line for each message with ndjson', () => {
    const at = open({ batch: { ...ofThree, format: 'ndjson' } })
    send(at, 'a', 'b', 'c')
    const [body = ''] = at.bodies()
    expect(body.split('\n').map((line) => (line === '' ? '' : JSON.parse(line).messageId))).toEqual([
      'a',
      'b',
      'c',
      '',
    ])
  })
})

type Plan = { sizes: number[]; maxMessages: number; answers: number[][]; strategy: 'all' | 'failover' }

const plans: fc.Arbitrary<Plan> = fc.record({
  sizes: fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 6 }),
  maxMessages: fc.integer({ min: 1, max: 10 }),
  answers: fc.array(fc.array(fc.constantFrom(200, 400, 413, 500, 207, 401), { maxLength: 12 }), {
    minLength: 1,
    maxLength: 12,
  }),
  strategy: fc.constantFrom('all', 'failover'),
})

test('whatever the answers are, each message ends once: delivered, on a retry topic, or as a dead letter', async () => {
  await fc.assert(
    fc.asyncProperty(plans, async ({ sizes, maxMessages, answers, strategy }) => {
      const batch = { ...ofThree, maxMessages, maxWaitMs: 1 }
      const at = open({ batch, ...two(strategy), maxInFlight: 3 })
      const records = sizes.flatMap((size, group) =>
        send(at, ...Array.from({ length: size }, (_, index) => `${group}-${index}`)),
      )
      let turn = 0
      const isOpen = (): boolean => records.some(({ settled, givenBack }) => settled + givenBack === 0)
      for (let rounds = 0; isOpen() && rounds < 2_000; rounds++) {
        const [one] = at.posted
        if (one === undefined) await new Promise((resolve) => setTimeout(resolve, 1))
        else {
          const list = answers[turn++ % answers.length] ?? []
          const count = idsIn(one.body).length
          const [first = 200] = list
          const each = Array.from({ length: count }, (_, index) => list[index % list.length] ?? 200)
          one.answer(first === 207 ? statuses(...each) : { kind: 'answer', status: first })
          await at.settle()
        }
      }
      while (at.posted.length > 0) await at.answer(taken)
      expect(records.map(({ settled, givenBack }) => settled + givenBack)).toEqual(records.map(() => 1))
      const ends = at.told.filter((line) => /^(?:delivered|parked|dead)/.test(line))
      expect(ends).toHaveLength(records.length)
      expect(at.pipeline.held).toEqual({ records: 0, bytes: 0 })
      expect({ inFlight: at.pipeline.inFlight, queued: at.pipeline.queued }).toEqual({
        inFlight: 0,
        queued: 0,
      })
      at.pipeline.stop()
    }),
    { numRuns: 100 },
  )
})
