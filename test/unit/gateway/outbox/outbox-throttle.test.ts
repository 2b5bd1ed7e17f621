import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Availability } from '../../../../src/gateway/outbox/availability.ts'
import { arrivalAt, occasionOf } from '../../../../src/gateway/messages/clock.ts'
import { Outbox } from '../../../../src/gateway/outbox/outbox.ts'
import type { Delivered } from '../../../../src/gateway/outbox/parcel.ts'
import { HeldSender } from '../held-sender.ts'

const lingerMs = 5
const occasion = occasionOf(undefined, arrivalAt(0))
const [ok, failure] = [undefined, 'no']

let sender: HeldSender
let outbox: Outbox
let availability: Availability

const now = (): number => performance.now()

beforeEach(() => {
  vi.useFakeTimers()
  sender = new HeldSender()
  availability = new Availability({
    topics: ['events'],
    partitions: 3,
    check: async () => [],
    onChange: () => {},
    now,
  })
  const limits = { lingerMs, ackTimeoutMs: 1_500, bufferBytes: 10_000_000, batchBytes: 900_000 }
  outbox = new Outbox({ sender, availability, ...limits, now })
})

afterEach(() => {
  outbox.stop()
  availability.stop()
  vi.useRealTimers()
})

/** Submits one record for each value. The first is for partition 0, the second for partition 1, and so on. */
function submit(values: readonly string[], { ids = [] as readonly string[] } = {}) {
  const parcel = outbox.parcel('events', 'shop', occasion)
  for (const [partition, value] of values.entries())
    parcel.add({ partition, key: 'u', value, headers: {}, bytes: 100 }, ids[partition])
  const submitted: { outcome: Delivered | undefined } = { outcome: undefined }
  void outbox.submit(parcel).then((outcome) => (submitted.outcome = outcome))
  return submitted
}

describe('while a broker accepts nothing because a quota is used up', () => {
  const throttleMs = 30_000

  test('records that were not sent are refused at once and never sent, and nothing counts as failing', async () => {
    const one = submit(['a'])
    await vi.advanceTimersByTimeAsync(lingerMs)
    await sender.throttle(0, throttleMs, { isSent: false })
    await sender.settle(0, failure)
    expect([one.outcome, outbox.bytes]).toEqual(['throttled', 0])
    const next = submit(['b'])
    await vi.advanceTimersByTimeAsync(1_000)
    expect([next.outcome, sender.batches.length]).toEqual(['throttled', 1])
    expect(outbox.throttleMs('events')).toBe(throttleMs - 1_000)
    expect([availability.takes('events', 0), availability.refused('events')]).toEqual([true, 0])
    await vi.advanceTimersByTimeAsync(throttleMs)
    const last = submit(['c'])
    await vi.advanceTimersByTimeAsync(lingerMs)
    await sender.settle(1, ok)
    expect([sender.batches[1]?.route, sender.recordsOf(1), last.outcome]).toEqual([
      'main',
      ['c'],
      'acknowledged',
    ])
  })

  test('records that were sent are refused at once, and are not written again when their client repeats them', async () => {
    const one = submit(['a'], { ids: ['m1'] })
    await vi.advanceTimersByTimeAsync(lingerMs)
    await sender.throttle(0, throttleMs, { isSent: true })
    expect(one.outcome).toBe('throttled')
    await vi.advanceTimersByTimeAsync(throttleMs)
    expect(availability.refused('events')).toBe(0)
    await sender.settle(0, ok)
    const parcel = outbox.parcel('events', 'shop', occasion)
    const written = parcel.flights.get('m1')
    expect(written?.isAcknowledged).toBe(true)
    if (written !== undefined) parcel.joined.add(written)
    expect(await outbox.submit(parcel)).toBe('acknowledged')
    expect(sender.batches).toHaveLength(1)
  })

  test('other partitions go on, and a topic is refused before its body is read only if all partitions wait', async () => {
    const one = submit(['a', 'b'])
    await vi.advanceTimersByTimeAsync(lingerMs)
    const { produces = [], onSettled, onThrottled } = sender.batches[0] ?? {}
    const [throttled, other] = produces
    if (throttled === undefined || other === undefined) throw new Error('there are two produces')
    onThrottled?.(throttled, throttleMs, false)
    onSettled?.(throttled, failure)
    onSettled?.(other, ok)
    await vi.advanceTimersByTimeAsync(0)
    expect([one.outcome, outbox.obstacle('events')]).toEqual(['throttled', undefined])
    for (const partition of [1, 2]) availability.throttled('events', partition, throttleMs)
    expect(outbox.obstacle('events')).toBe('throttled')
    await vi.advanceTimersByTimeAsync(throttleMs)
    expect(outbox.obstacle('events')).toBeUndefined()
  })
})
