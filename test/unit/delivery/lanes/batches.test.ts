import * as fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import type { BatchLimits } from '../../../../src/delivery/lanes/lane-queue.ts'
import type { LanesOptions } from '../../../../src/delivery/lanes/lanes-ports.ts'
import { until } from '../../../support/until.ts'
import { type LanesAtWork, openLanes, Parcel, stopLanes } from './parcel.ts'

afterEach(stopLanes)

const longMs = 1_000_000
const ofThree: BatchLimits = { maxMessages: 3, maxBytes: 1_000, maxWaitMs: longMs }

type Batching = LanesAtWork & { batches: string[][]; leads: Parcel[] }

/** Lanes whose batches take as much as they may. */
function openBatching(settings: Partial<LanesOptions<Parcel>> = {}): Batching {
  const batches: string[][] = []
  const leads: Parcel[] = []
  const opened = openLanes({
    ...settings,
    start(lead) {
      const batch = [lead]
      let bytes = lead.bytes
      const { maxMessages = 1, maxBytes = 0 } = lead.laneBatch ?? {}
      const fits = (next: Parcel): boolean => batch.length < maxMessages && bytes + next.bytes <= maxBytes
      for (let next = opened.lanes.takeMore(lead, fits); next !== undefined;) {
        batch.push(next)
        bytes += next.bytes
        next = opened.lanes.takeMore(lead, fits)
      }
      leads.push(lead)
      batches.push(batch.map(({ name }) => name))
    },
  })
  return { ...opened, batches, leads }
}

function parcel(name: string, settings: Partial<Parcel> = {}): Parcel {
  return new Parcel('a', name, { laneBatch: ofThree, bytes: 10, ...settings })
}

describe('a lane with batches', () => {
  test('starts a batch as soon as it is full, and none before', () => {
    const { lanes, batches } = openBatching()
    for (const name of ['1', '2']) lanes.offer(parcel(name))
    expect(batches).toEqual([])
    for (const name of ['3', '4', '5']) lanes.offer(parcel(name))
    expect(batches).toEqual([['1', '2', '3']])
    lanes.offer(parcel('6'))
    expect(batches).toEqual([
      ['1', '2', '3'],
      ['4', '5', '6'],
    ])
  })

  test('starts what has waited for maxWait, however little it is', async () => {
    const { lanes, batches } = openBatching()
    const laneBatch = { ...ofThree, maxWaitMs: 20 }
    lanes.offer(parcel('1', { laneBatch }))
    lanes.offer(parcel('2', { laneBatch }))
    expect(batches).toEqual([])
    await until('they leave', () => batches.length > 0)
    expect(batches).toEqual([['1', '2']])
  })

  test('is full by its bytes too, and a large delivery leaves alone', () => {
    const { lanes, batches } = openBatching()
    lanes.offer(parcel('1', { bytes: 400 }))
    lanes.offer(parcel('2', { bytes: 700 }))
    expect(batches).toEqual([['1']])
    lanes.offer(parcel('large', { bytes: 5_000 }))
    expect(batches).toEqual([['1'], ['2'], ['large']])
  })

  test('has as many batches in flight as its cap, and those that wait meanwhile fill the next ones', () => {
    const { lanes, batches, leads } = openBatching()
    for (let index = 1; index <= 12; index++) lanes.offer(parcel(String(index), { laneCap: 2 }))
    expect(batches).toHaveLength(2)
    expect(lanes.inFlight).toBe(2)
    for (const lead of leads.slice()) lanes.finished(lead)
    expect(batches).toHaveLength(4)
    expect(lanes.queued).toBe(0)
  })

  test('takes one token of its rate limit for a batch', () => {
    const { lanes, batches } = openBatching()
    const laneRate = { perSecond: 0.01, burst: 2 }
    for (let index = 0; index < 12; index++) lanes.offer(parcel(String(index), { laneRate }))
    expect(batches).toHaveLength(2)
  })

  test('says how many deliveries leave together, by the size of those that wait', () => {
    const { lanes } = openBatching({ mayStart: () => false })
    expect(lanes.perBatch('a')).toBeUndefined()
    lanes.offer(parcel('1'))
    expect(lanes.perBatch('a')).toBe(3)
    lanes.offer(parcel('2', { bytes: 990 }))
    expect(lanes.perBatch('a')).toBe(2)
    lanes.offer(parcel('3', { bytes: 5_000 }))
    expect(lanes.perBatch('a')).toBe(1)
    lanes.offer(new Parcel('b', '4'))
    expect(lanes.perBatch('b')).toBe(1)
  })

  test('does not wait for others when the buffer has no more room', () => {
    const { lanes, batches } = openBatching({ freeRecords: () => 2 })
    lanes.offer(parcel('1'))
    expect(batches).toEqual([])
    lanes.offer(parcel('2'))
    expect(batches).toEqual([['1', '2']])
  })

  test('lets go what is abandoned at once, and starts nothing of it', () => {
    const { lanes, batches, letGo } = openBatching()
    const first = parcel('1')
    lanes.offer(first)
    first.isAbandoned = true
    lanes.letGoAbandoned()
    expect(letGo).toEqual([first])
    expect({ batches, queued: lanes.queued }).toEqual({ batches: [], queued: 0 })
    for (const name of ['2', '3']) lanes.offer(parcel(name))
    expect(batches).toEqual([])
    lanes.offer(parcel('4'))
    expect(batches).toEqual([['2', '3', '4']])
  })

  test('starts what comes from its queue without a wait, once no more is on its way', () => {
    let more = true
    const { lanes, batches } = openBatching({ areMoreComing: () => more })
    lanes.offer(parcel('1', { isFromQueue: true }))
    expect(batches).toEqual([])
    more = false
    lanes.offer(parcel('2', { isFromQueue: true }))
    expect(batches).toEqual([['1', '2']])
  })

  test('is a lane without batches from the next delivery on, when the catalog says so, and the other way round', () => {
    const { lanes, batches } = openBatching()
    lanes.offer(parcel('1'))
    lanes.offer(parcel('2', { laneBatch: undefined }))
    lanes.offer(parcel('3', { laneBatch: undefined }))
    expect(batches.flat()).toEqual(['1', '2', '3'])
    lanes.offer(parcel('4'))
    lanes.offer(parcel('5'))
    expect(batches.flat()).toHaveLength(3)
    lanes.offer(parcel('6'))
    expect(batches.at(-1)).toEqual(['4', '5', '6'])
  })
})

test('whatever comes and ends: no batch is too large, the order holds, and each delivery leaves once', () => {
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant('offer' as const), bytes: fc.integer({ min: 1, max: 60 }) }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('finish' as const), bytes: fc.nat(10) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('abandon' as const), bytes: fc.nat(10) }) },
  )
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 200 }),
      fc.integer({ min: 1, max: 8 }),
      fc.integer({ min: 20, max: 100 }),
      (steps, maxMessages, maxBytes) => {
        const laneBatch = { maxMessages, maxBytes, maxWaitMs: longMs }
        const { lanes, batches, leads, letGo } = openBatching()
        const offered: Parcel[] = []
        const open: Parcel[] = []
        for (const { kind, bytes } of steps) {
          if (kind === 'offer') {
            const one = new Parcel('a', String(offered.length), { laneBatch, bytes, laneCap: 3 })
            offered.push(one)
            lanes.offer(one)
          } else if (kind === 'finish') {
            open.push(...leads.splice(0))
            const ended = open.shift()
            if (ended !== undefined) lanes.finished(ended)
          } else {
            const one = offered[offered.length - 1 - bytes]
            if (one !== undefined) one.isAbandoned = true
            lanes.letGoAbandoned()
          }
        }
        const left = lanes.takeQueued(() => true)
        const bytesOf = (name: string): number => offered[Number(name)]?.bytes ?? 0
        for (const batch of batches) {
          const sum = batch.map(bytesOf).reduce((total, bytes) => total + bytes, 0)
          expect(batch.length).toBeLessThanOrEqual(maxMessages)
          expect(batch.length === 1 || sum <= maxBytes).toBe(true)
        }
        const sent = batches.flat().map(Number)
        expect(sent).toEqual(sent.toSorted((a, b) => a - b))
        const all = [...sent, ...[...letGo, ...left].map(({ name }) => Number(name))]
        expect(all.toSorted((a, b) => a - b)).toEqual(offered.map((_, index) => index))
        expect(lanes.queued).toBe(0)
        lanes.stop()
      },
    ),
  )
})
