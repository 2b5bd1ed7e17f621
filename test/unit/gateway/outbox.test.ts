import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { arrivalAt, occasionOf } from '../../../src/gateway/clock.ts'
import { Availability } from '../../../src/gateway/availability.ts'
import { type BatchSender, type Delivered, Outbox, type OutgoingRecord } from '../../../src/gateway/outbox.ts'

type Batch = Parameters<BatchSender['send']>[0]
type Outcome = Awaited<ReturnType<BatchSender['send']>>

const ok: Outcome = { ok: true }
const failure: Outcome = { ok: false, detail: 'no' }
const lingerMs = 5
const ackTimeoutMs = 1_500
const occasion = occasionOf(undefined, arrivalAt(0))

/** Stands for Kafka: holds each batch until the test says what becomes of it. */
class HeldSender implements BatchSender {
  readonly batches: { batch: Batch; settle: (outcome: Outcome) => void }[] = []

  send(batch: Batch): Promise<Outcome> {
    return new Promise((settle) => this.batches.push({ batch, settle }))
  }

  recordsOf(index: number): string[] {
    return (this.batches[index]?.batch ?? []).flatMap(({ records }) => records.map(({ value }) => value))
  }

  /** Lets a batch end, and all that waits for it go on. */
  async settle(index: number, outcome: Outcome): Promise<void> {
    this.batches[index]?.settle(outcome)
    await vi.advanceTimersByTimeAsync(0)
  }
}

let sender: HeldSender
let outbox: Outbox
let availability: Availability

function begin(bufferBytes = 10_000_000): void {
  sender = new HeldSender()
  availability = new Availability({ check: async () => undefined, onChange: () => {}, now: () => 0 })
  outbox = new Outbox({ sender, availability, lingerMs, ackTimeoutMs, bufferBytes })
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

/** Submits records of 100 bytes each, or of the sizes given. */
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
  test('sends what comes within a few milliseconds together, in its order', async () => {
    const one = submit(['a', 'b'])
    await vi.advanceTimersByTimeAsync(lingerMs - 1)
    const other = submit(['c'])
    expect(sender.batches).toHaveLength(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(sender.batches).toHaveLength(1)
    expect(sender.recordsOf(0)).toEqual(['a', 'b', 'c'])
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
    const topics = sender.batches[0]?.batch.map(({ topic, records }) => [
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

  test('writes the records of a request in their order, however many produces they need', async () => {
    const values = Array.from({ length: 2_500 }, String)
    submit(values)
    await vi.advanceTimersByTimeAsync(lingerMs)
    for (let index = 0; index < sender.batches.length; index++) await sender.settle(index, ok)
    expect(sender.batches.length).toBeGreaterThan(1)
    expect(sender.batches.flatMap((_, index) => sender.recordsOf(index))).toEqual(values)
  })

  test.each([
    { what: 'records', requests: 10, records: 1_000, bytes: 100, expected: 2 },
    { what: 'bytes of a partition', requests: 10, records: 1, bytes: 400_000, expected: 2 },
    { what: 'bytes', requests: 12, records: 3, bytes: 150_000, expected: 6 },
  ])('puts no more $what into a produce than it may have', async ({ requests, records, bytes, expected }) => {
    for (let index = 0; index < requests; index++) submit(Array.from({ length: records }, String), { bytes })
    await vi.advanceTimersByTimeAsync(lingerMs)
    expect(sender.recordsOf(0)).toHaveLength(expected * records)
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

  test('says that Kafka does not take it, to all of a produce that failed', async () => {
    const one = submit(['a'])
    const other = submit(['b'])
    await vi.advanceTimersByTimeAsync(lingerMs)
    await sender.settle(0, failure)
    expect([one.outcome, other.outcome]).toEqual(['unavailable', 'unavailable'])
    const next = submit(['c'])
    await vi.advanceTimersByTimeAsync(0)
    expect(next.outcome).toBe('unavailable')
    expect(outbox.bytes).toBe(0)
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

/** As a second request that found the first one's message. */
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
  const settle = fc.record({ kind: fc.constant('settle' as const), isOk: fc.boolean(), pick: fc.nat(3) })
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
        const settleOne = async (pick: number, outcome: Outcome): Promise<void> => {
          for (; seen < sender.batches.length; seen++) open.add(seen)
          const index = [...open][pick % Math.max(1, open.size)]
          if (index === undefined) return
          open.delete(index)
          if (outcome.ok) for (const value of sender.recordsOf(index)) acknowledged.add(value)
          await sender.settle(index, outcome)
        }
        for (const next of steps) {
          if (next.kind === 'request') {
            const values = Array.from({ length: next.records }, (_, index) => `${requests.length}-${index}`)
            requests.push({ values, submitted: submit(values, { bytes: next.bytes }) })
          } else if (next.kind === 'settle') await settleOne(next.pick, next.isOk ? ok : failure)
          else await vi.advanceTimersByTimeAsync(next.ms)
          for (const { values, submitted } of requests) {
            if (submitted.outcome !== 'acknowledged') continue
            expect(values.every((value) => acknowledged.has(value))).toBe(true)
          }
        }
        await vi.advanceTimersByTimeAsync(ackTimeoutMs)
        expect(requests.filter(({ submitted }) => submitted.outcome === undefined)).toEqual([])
        for (let turn = 0; turn < 200 && (open.size > 0 || seen < sender.batches.length); turn++)
          await settleOne(0, ok)
        expect([outbox.records, outbox.bytes]).toEqual([0, 0])
        availability.stop()
        outbox.stop()
      }),
      { numRuns: 1_000 },
    )
  })
})
