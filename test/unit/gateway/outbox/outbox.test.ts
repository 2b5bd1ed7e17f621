import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { arrivalAt, occasionOf } from '../../../../src/gateway/messages/clock.ts'
import { Availability } from '../../../../src/gateway/outbox/availability.ts'
import { Outbox } from '../../../../src/gateway/outbox/outbox.ts'
import type { Delivered, OutgoingRecord } from '../../../../src/gateway/outbox/parcel.ts'
import { HeldSender, type Outcome } from '../held-sender.ts'

const ok: Outcome = undefined
const failure: Outcome = 'no'
const lingerMs = 5
const ackTimeoutMs = 1_500
const occasion = occasionOf(undefined, arrivalAt(0))

let sender: HeldSender
let outbox: Outbox
let availability: Availability

const now = (): number => performance.now()

function begin(bufferBytes = 10_000_000): void {
  sender = new HeldSender()
  const topics = ['events', 'deletions']
  availability = new Availability({ topics, partitions: 3, check: async () => [], onChange: () => {}, now })
  outbox = new Outbox({ sender, availability, lingerMs, ackTimeoutMs, bufferBytes, batchBytes: 900_000, now })
}

beforeEach(() => {
  vi.useFakeTimers()
  begin()
})

afterEach(() => {
  outbox.stop()
  availability.stop()
  vi.useRealTimers()
})

function record(value: string, bytes = 100, partition = 0): OutgoingRecord {
  return { partition, key: 'u', value, headers: {}, bytes }
}

type Submitted = { outcome: Delivered | undefined }

/** Submits one record for each value. The records have 100 bytes each, unless `bytes` says otherwise. */
function submit(values: readonly string[], { bytes = 100, ids = [] as readonly string[] } = {}): Submitted {
  const parcel = outbox.parcel('events', 'shop', occasion)
  for (const [index, value] of values.entries()) parcel.add(record(value, bytes, index % 3), ids[index])
  return follow(outbox.submit(parcel))
}

function follow(promise: Promise<Delivered>): Submitted {
  const submitted: Submitted = { outcome: undefined }
  void promise.then((outcome) => (submitted.outcome = outcome))
  return submitted
}

describe('the outbox', () => {
  test('sends what comes within a few milliseconds together, that of a partition in its order', async () => {
    const one = submit(['a', 'b'])
    await vi.advanceTimersByTimeAsync(lingerMs - 1)
    const other = submit(['c'])
    expect(sender.batches).toHaveLength(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(sender.batches).toHaveLength(1)
    expect(sender.recordsOf(0)).toEqual(['a', 'c', 'b'])
    expect([one.outcome, other.outcome]).toEqual([undefined, undefined])
    await sender.settle(0, ok)
    expect([one.outcome, other.outcome]).toEqual(['acknowledged', 'acknowledged'])
    expect([outbox.bytes, outbox.records]).toEqual([0, 0])
  })

  test('keeps topics apart', async () => {
    submit(['a'])
    const parcel = outbox.parcel('deletions', '', occasion)
    parcel.add(record('d'), undefined)
    void outbox.submit(parcel)
    submit(['b'])
    await vi.advanceTimersByTimeAsync(lingerMs)
    const topics = sender.batches[0]?.produces.map(({ topic, records }) => [
      topic,
      records.map(({ value }) => value),
    ])
    expect(topics).toEqual([
      ['events', ['a', 'b']],
      ['deletions', ['d']],
    ])
  })

  test('has one produce under way, and takes along with the next all that came meanwhile', async () => {
    submit(['a'])
    await vi.advanceTimersByTimeAsync(lingerMs)
    submit(['b'])
    await vi.advanceTimersByTimeAsync(100)
    submit(['c'])
    expect(sender.batches).toHaveLength(1)
    await sender.settle(0, ok)
    expect(sender.recordsOf(1)).toEqual(['b', 'c'])
  })

  test('writes the records of a partition in the order of a request, however many produces they need', async () => {
    const values = Array.from({ length: 2_500 }, String)
    submit(values)
    await vi.advanceTimersByTimeAsync(lingerMs)
    for (let index = 0; index < sender.batches.length; index++) await sender.settle(index, ok)
    expect(sender.batches.length).toBeGreaterThan(1)
    const written = sender.batches.flatMap((_, index) => sender.recordsOf(index)).map(Number)
    for (const partition of [0, 1, 2]) {
      const expected = values.map(Number).filter((value) => value % 3 === partition)
      expect(written.filter((value) => value % 3 === partition)).toEqual(expected)
    }
  })

  test.each([
    { what: 'records', requests: 10, records: 1_000, bytes: 100, expected: 2 },
    { what: 'bytes of a partition', requests: 10, records: 1, bytes: 400_000, expected: 2 },
    { what: 'bytes', requests: 12, records: 3, bytes: 150_000, expected: 6 },
  ])('puts no more $what into a produce than it may have', async ({ requests, records, bytes, expected }) => {
    for (let index = 0; index < requests; index++) submit(Array.from({ length: records }, String), { bytes })
    await vi.advanceTimersByTimeAsync(lingerMs)
    // The records of a request for one partition stay together, so a produce may have a little less than its
    // limit.
    expect(sender.recordsOf(0).length).toBeLessThanOrEqual(expected * records)
    expect(sender.recordsOf(0).length).toBeGreaterThan((expected - 1) * records)
  })

  test('splits a request that is too much for one produce, and answers when all of it is there', async () => {
    const large = submit(Array.from({ length: 2_500 }, String))
    await vi.advanceTimersByTimeAsync(lingerMs)
    await sender.settle(0, ok)
    expect(large.outcome).toBeUndefined()
    await sender.settle(1, ok)
    expect(large.outcome).toBe('acknowledged')
  })

  test('answers at once what there is nothing of', async () => {
    const nothing = submit([])
    await vi.advanceTimersByTimeAsync(0)
    expect(nothing.outcome).toBe('acknowledged')
    expect(sender.batches).toHaveLength(0)
  })

  test('sends again what was not taken, by itself, until nobody waits for it, and refuses what comes then', async () => {
    const one = submit(['a'])
    const other = submit(['b'])
    await vi.advanceTimersByTimeAsync(lingerMs)
    let sent = 0
    for (; sent < sender.batches.length; sent++) {
      await sender.settle(sent, failure)
      await vi.advanceTimersByTimeAsync(400)
    }
    expect([one.outcome, other.outcome]).toEqual(['too_late', 'too_late'])
    expect(sender.batches.slice(1).every(({ route }) => route === 'isolated')).toBe(true)
    expect(sent).toBeGreaterThan(3)
    const next = submit(['c'])
    await vi.advanceTimersByTimeAsync(0)
    expect(next.outcome).toBe('unavailable')
    expect([outbox.bytes, outbox.records]).toEqual([0, 0])
  })

  test('gives up what is not acknowledged in time, and does not send what nobody waits for any more', async () => {
    const first = submit(['a'])
    await vi.advanceTimersByTimeAsync(lingerMs)
    const second = submit(['b'])
    await vi.advanceTimersByTimeAsync(ackTimeoutMs)
    expect([first.outcome, second.outcome]).toEqual(['too_late', 'too_late'])
    expect(outbox.records).toBe(1)
    await sender.settle(0, ok)
    expect(sender.batches).toHaveLength(1)
    expect([outbox.records, outbox.bytes]).toEqual([0, 0])
  })

  test('takes nothing beyond its buffer, and again when there is room', async () => {
    begin(1_000)
    const first = submit(Array.from({ length: 10 }, String))
    const second = submit(['x'])
    await vi.advanceTimersByTimeAsync(lingerMs)
    expect(second.outcome).toBe('full')
    await sender.settle(0, ok)
    expect(first.outcome).toBe('acknowledged')
    const third = submit(['x'])
    await vi.advanceTimersByTimeAsync(lingerMs)
    await sender.settle(1, ok)
    expect(third.outcome).toBe('acknowledged')
  })
})

/** The values of three records, for the partitions 0, 1 and 2. */
const ofAll = ['a', 'b', 'c']

/**
 * Submits values again, as a client does that got no 200. Values that are in flight aren't written again.
 * `found` lists these values.
 */
function repeat(values: readonly string[]): { submitted: Submitted; found: string[] } {
  const parcel = outbox.parcel('events', 'shop', occasion)
  const found: string[] = []
  for (const [index, value] of values.entries()) {
    const part = parcel.flights.get(value)
    if (part === undefined) parcel.add(record(value, 100, index % 3), value)
    else {
      parcel.joined.add(part)
      found.push(value)
    }
  }
  return { submitted: follow(outbox.submit(parcel)), found }
}

describe('a partition that takes nothing', () => {
  test('concerns those only that have a record for it', async () => {
    const mixed = submit(ofAll)
    const healthy = submit(['d'])
    await vi.advanceTimersByTimeAsync(lingerMs)
    await sender.settle(0, ok, 0)
    expect([healthy.outcome, mixed.outcome]).toEqual(['acknowledged', undefined])
    await sender.settle(0, ok, 1)
    await sender.settle(0, failure, 2)
    await vi.advanceTimersByTimeAsync(100)
    expect(sender.recordsOf(1)).toEqual(['c'])
    await sender.settle(1, ok)
    expect(mixed.outcome).toBe('acknowledged')
  })

  test('does not hold up the others: they are sent again while its produce is still under way', async () => {
    submit(ofAll)
    await vi.advanceTimersByTimeAsync(lingerMs)
    await sender.settle(0, ok, 0)
    await sender.settle(0, ok, 1)
    const next = submit(['d', 'e'])
    await vi.advanceTimersByTimeAsync(300)
    expect(sender.recordsOf(1)).toEqual(['d', 'e'])
    await sender.settle(1, ok)
    expect(next.outcome).toBe('acknowledged')
    const more = submit(['f'])
    await vi.advanceTimersByTimeAsync(lingerMs)
    await sender.settle(2, ok)
    expect(more.outcome).toBe('acknowledged')
  })

  test('has nothing of a request written that it has a record of, once it is known', async () => {
    const early = submit(ofAll)
    await vi.advanceTimersByTimeAsync(lingerMs)
    await sender.settle(0, ok, 0)
    await sender.settle(0, ok, 1)
    await sender.settle(0, failure, 2)
    await vi.advanceTimersByTimeAsync(400)
    for (let index = 1; index < sender.batches.length; index++) {
      await sender.settle(index, failure)
      await vi.advanceTimersByTimeAsync(400)
    }
    expect(early.outcome).toBe('too_late')
    const sent = sender.batches.length
    const late = submit(ofAll)
    await vi.advanceTimersByTimeAsync(100)
    expect(late.outcome).toBe('unavailable')
    expect(sender.batches.length).toBe(sent)
  })

  test('has the rest of its request known when a client repeats it: what is written is not written again', async () => {
    const first = submit(ofAll, { ids: ofAll })
    await vi.advanceTimersByTimeAsync(lingerMs)
    await sender.settle(0, ok, 0)
    await sender.settle(0, ok, 1)
    await vi.advanceTimersByTimeAsync(ackTimeoutMs)
    expect(first.outcome).toBe('too_late')
    await sender.settle(0, failure, 2)
    const { found } = repeat(['a', 'b'])
    expect(found).toEqual(['a', 'b'])
    availability.worked('events', 2)
    const second = repeat(ofAll)
    expect(second.found).toEqual(['a', 'b'])
    await vi.advanceTimersByTimeAsync(100)
    const last = sender.batches.length - 1
    expect(sender.recordsOf(last)).toEqual(['c'])
    await sender.settle(last, ok)
    expect(second.submitted.outcome).toBe('acknowledged')
  })

  test('and what was acknowledged too late is known too, for a minute', async () => {
    const first = submit(['a'], { ids: ['a'] })
    await vi.advanceTimersByTimeAsync(ackTimeoutMs + lingerMs)
    await sender.settle(0, ok)
    expect(first.outcome).toBe('too_late')
    const { submitted, found } = repeat(['a'])
    await vi.advanceTimersByTimeAsync(0)
    expect([submitted.outcome, found]).toEqual(['acknowledged', ['a']])
    await vi.advanceTimersByTimeAsync(60_000)
    submit(['b'])
    expect(repeat(['a']).found).toEqual([])
  })
})

/** Submits a second request with the message of a first request that is still in flight. */
function join(id: string): Submitted {
  const parcel = outbox.parcel('events', 'shop', occasion)
  const part = parcel.flights.get(id)
  if (part === undefined) throw new Error('it is not in flight')
  parcel.joined.add(part)
  return follow(outbox.submit(parcel))
}

describe('an identical message in flight', () => {
  test('is found until it is acknowledged, by its own source only', async () => {
    submit(['a'], { ids: ['m1'] })
    expect(outbox.parcel('events', 'shop', occasion).flights.has('m1')).toBe(true)
    expect(outbox.parcel('events', 'app', occasion).flights.has('m1')).toBe(false)
    await vi.advanceTimersByTimeAsync(lingerMs)
    await sender.settle(0, ok)
    expect(outbox.parcel('events', 'shop', occasion).flights.has('m1')).toBe(false)
  })

  test('answers both requests with its one produce', async () => {
    const one = submit(['a'], { ids: ['m1'] })
    const other = join('m1')
    await vi.advanceTimersByTimeAsync(lingerMs)
    expect(sender.recordsOf(0)).toEqual(['a'])
    await sender.settle(0, ok)
    expect([one.outcome, other.outcome]).toEqual(['acknowledged', 'acknowledged'])
  })

  test('is still sent when only the second request waits for it', async () => {
    submit(['before'])
    await vi.advanceTimersByTimeAsync(lingerMs)
    const one = submit(['a'], { ids: ['m1'] })
    await vi.advanceTimersByTimeAsync(ackTimeoutMs - 100)
    const other = join('m1')
    await vi.advanceTimersByTimeAsync(100)
    await sender.settle(0, ok)
    await vi.advanceTimersByTimeAsync(lingerMs)
    expect(sender.recordsOf(1)).toEqual(['a'])
    await sender.settle(1, ok)
    expect([one.outcome, other.outcome]).toEqual(['too_late', 'acknowledged'])
  })
})

describe('whatever becomes of the produces', () => {
  const request = fc.record({
    kind: fc.constant('request' as const),
    records: fc.integer({ min: 1, max: 1_500 }),
    bytes: fc.constantFrom(100, 1_000, 60_000),
  })
  const settle = fc.record({
    kind: fc.constant('settle' as const),
    how: fc.constantFrom('ok', 'failed', 'throttled', 'stuck'),
    pick: fc.nat(3),
  })
  const wait = fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(1, 5, 20, 500, 1_500) })
  const step = fc.oneof({ arbitrary: request, weight: 3 }, { arbitrary: settle, weight: 3 }, wait)

  test('a request is acknowledged only when Kafka has every record of it, and each ends in time', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        begin(200_000_000)
        const requests: { values: string[]; submitted: Submitted }[] = []
        const acknowledged = new Set<string>()
        const open = new Set<number>()
        let seen = 0
        const settleOne = async (pick: number, outcome: Outcome, isThrottled = false): Promise<void> => {
          for (; seen < sender.batches.length; seen++) open.add(seen)
          const index = [...open][pick % Math.max(1, open.size)]
          if (index === undefined) return
          open.delete(index)
          if (outcome === ok) for (const value of sender.recordsOf(index)) acknowledged.add(String(value))
          if (isThrottled) await sender.throttle(index, 700, { isSent: false })
          await sender.settle(index, outcome)
        }
        for (const next of steps) {
          if (next.kind === 'request') {
            const values = Array.from({ length: next.records }, (_, index) => `${requests.length}-${index}`)
            requests.push({ values, submitted: submit(values, { bytes: next.bytes }) })
          } else if (next.kind === 'settle' && next.how === 'stuck') {
            const index = [...open][next.pick % Math.max(1, open.size)]
            if (index !== undefined) await sender.throttle(index, 700, { isSent: true })
          } else if (next.kind === 'settle')
            await settleOne(next.pick, next.how === 'ok' ? ok : failure, next.how === 'throttled')
          else await vi.advanceTimersByTimeAsync(next.ms)
          for (const { values, submitted } of requests) {
            if (submitted.outcome !== 'acknowledged') continue
            expect(values.every((value) => acknowledged.has(value))).toBe(true)
          }
        }
        await vi.advanceTimersByTimeAsync(ackTimeoutMs)
        expect(requests.filter(({ submitted }) => submitted.outcome === undefined)).toEqual([])
        for (let turn = 0; turn < 200 && (open.size > 0 || seen < sender.batches.length); turn++)
          await settleOne(0, ok).then(() => vi.advanceTimersByTimeAsync(lingerMs))
        expect([outbox.records, outbox.bytes]).toEqual([0, 0])
        availability.stop()
        outbox.stop()
      }),
      { numRuns: 1_000 },
    )
  })
})
