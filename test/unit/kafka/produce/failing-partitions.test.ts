import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { FailingPartitions } from '../../../../src/kafka/produce/failing-partitions.ts'

const patienceMs = 3_000
let failing: FailingPartitions
let told: string[]
/** The partitions that could take records, as the brokers say; `undefined` if no broker answers. */
let open: readonly string[] | undefined
let looks: number

beforeEach(() => {
  vi.useFakeTimers()
  told = []
  open = ['t/0', 't/1', 't/2']
  looks = 0
  failing = new FailingPartitions({
    patienceMs,
    onFailing: ({ topic, partition }, isFailing) =>
      told.push(`${isFailing ? 'fails' : 'works'} ${topic}/${partition}`),
    onStalled: (isStalled, reason) => told.push(isStalled ? `stalled: ${reason}` : 'goes on'),
    async isAnyOpen(isFailing) {
      looks++
      return open?.some((place) => !isFailing('t', Number(place.slice(2)))) ?? false
    },
  })
})

afterEach(() => {
  failing.stop()
  vi.useRealTimers()
})

const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms)
const fail = (partition: number): void => failing.failed({ topic: 't', partition, reason: `no ${partition}` })

describe('a partition that fails', () => {
  test('is told when it has failed for some seconds, once, and when it works again', async () => {
    fail(0)
    await pass(patienceMs - 1)
    fail(0)
    expect(told).toEqual([])
    await pass(1)
    fail(0)
    expect(told).toEqual(['fails t/0'])
    expect(failing.reported).toEqual(new Map([['t', 1]]))
    failing.took('t', 0)
    failing.took('t', 0)
    expect(told).toEqual(['fails t/0', 'works t/0'])
    expect(failing.reported).toEqual(new Map())
  })

  test('is not told of when it works again in time', async () => {
    fail(0)
    await pass(patienceMs - 1)
    failing.took('t', 0)
    await pass(patienceMs)
    expect(told).toEqual([])
  })

  test('is told at once where it was asked for so long already', () => {
    failing.failed({ topic: 't', partition: 0, reason: 'no answer' }, true)
    expect(told).toEqual(['fails t/0'])
  })
})

describe('all of them are away', () => {
  test('when no broker answers; they are not, once one partition takes something', async () => {
    open = undefined
    fail(0)
    await pass(patienceMs)
    expect(told).toEqual(['fails t/0', 'stalled: no 0'])
    await pass(10 * patienceMs)
    failing.took('t', 2)
    expect(told.slice(2)).toEqual(['goes on'])
  })

  test('when each that has a leader fails', async () => {
    for (const partition of [0, 1, 2]) fail(partition)
    await pass(patienceMs)
    expect(told.filter((line) => line.startsWith('stalled'))).toEqual(['stalled: no 0; no 1; no 2'])
  })

  test('not while another could take something, though nothing is written to it', async () => {
    fail(0)
    fail(1)
    await pass(20 * patienceMs)
    expect(told).toEqual(['fails t/0', 'fails t/1'])
    expect(looks).toBeGreaterThan(10)
  })

  test('no longer when the brokers are back, though nothing was written yet', async () => {
    open = []
    fail(0)
    await pass(patienceMs)
    open = ['t/1']
    await pass(patienceMs)
    expect(told).toEqual(['fails t/0', 'stalled: no 0', 'goes on'])
  })

  test('nobody is asked while another takes what is written, nor when all is well', async () => {
    fail(0)
    for (let second = 0; second < 30; second++) {
      failing.took('t', 1)
      await pass(1_000)
    }
    expect(looks).toBe(0)
    failing.took('t', 0)
    await pass(20 * patienceMs)
    expect(looks).toBe(0)
  })
})

test('a topic without partitions is one that fails, until a record has its place', async () => {
  fail(-1)
  await pass(patienceMs)
  failing.placed('t')
  expect(told).toEqual(['fails t/-1', 'works t/-1'])
})
