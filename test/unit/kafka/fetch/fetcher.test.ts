import { expect, onTestFinished, test, vi } from 'vitest'
import { errorCodes } from '../../../../src/kafka/wire/error-codes.ts'
import type { FetchListener } from '../../../../src/kafka/fetch/fetch-handle.ts'
import { createFetcher } from '../../../../src/kafka/fetch/fetcher.ts'
import { ByteWriter } from '../../../../src/kafka/wire/bytes.ts'
import { encodeBatch, encodeRecords } from '../../../support/raw-batch.ts'
import { apis, brokerOf, leaderOf, viewOf } from '../scripted-kafka.ts'

const noListener = { batch: () => undefined, lost: () => undefined, truncated: () => undefined }

function paused(on: Partial<FetchListener> = {}) {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const leaderLog = { topic: 'retry.1h', partition: 0, errorCode: 0, end: 100 }
  const view = viewOf(leaderOf(leaderLog))
  const told: string[] = []
  const tell = (_fields: object, message: string) => void told.push(message)
  const log = { info: tell, warn: tell, error: tell }
  const fetcher = createFetcher({ view, longestWaitMs: () => 250, log })
  onTestFinished(() => void fetcher.stop())
  const order = { topic: 'retry.1h', partition: 0, offset: 10, leaderEpoch: 0, isPaused: true }
  const handle = fetcher.open({ ...order, on: { ...noListener, ...on } })
  return { view, handle, told, leaderLog }
}

test('the trouble of a paused partition ends when the partition has a leader again', async () => {
  const { view, handle, told } = paused()
  view.lead(undefined)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(handle.trouble).toContain('no leader')
  expect(told).toEqual(['a partition can not be read: it waits, and is tried again; the others go on'])
  view.lead(1)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(handle.trouble).toBeUndefined()
  expect(told.at(-1)).toBe('a partition can be read again')
})

test('the trouble of a paused partition ends when its new leader answers', async () => {
  const { view, handle, leaderLog } = paused()
  leaderLog.errorCode = errorCodes.OFFSET_NOT_AVAILABLE
  view.lead(1)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(handle.trouble).toContain('OFFSET_NOT_AVAILABLE')
  leaderLog.errorCode = errorCodes.NONE
  await vi.advanceTimersByTimeAsync(6_000)
  expect(handle.trouble).toBeUndefined()
})

test('the end of a paused partition is still looked up after the clock was set back', async () => {
  const { handle, leaderLog } = paused()
  await vi.advanceTimersByTimeAsync(3_000)
  expect(handle.end.offset).toBe(100)
  vi.setSystemTime(Date.now() - 3_600_000)
  leaderLog.end = 200
  await vi.advanceTimersByTimeAsync(10_000)
  expect(handle.end.offset).toBe(200)
})

test('a broker that could not be asked is soon asked again after the clock was set back', async () => {
  const { view, handle } = paused()
  let tries = 0
  view.broker = () => {
    tries++
    return Promise.reject(new Error('refused'))
  }
  handle.resume()
  await vi.advanceTimersByTimeAsync(500)
  expect(tries).toBeGreaterThan(0)
  vi.setSystemTime(Date.now() - 3_600_000)
  await vi.advanceTimersByTimeAsync(1_000)
  const before = tries
  await vi.advanceTimersByTimeAsync(10_000)
  expect(tries).toBeGreaterThan(before)
})

/** Returns the answer to a fetch of a session, without records. `throttleMs` > 0: the client is throttled. */
function emptyAnswer(throttleMs: number, logEnd?: number): Buffer {
  const out = new ByteWriter().int32(throttleMs).int16(0).int32(7)
  if (logEnd === undefined) return out.int32(0).finished()
  const [noneAborted, noReplica] = [-1, -1]
  out.int32(1).string('retry.1h').int32(1).int32(0).int16(0)
  out.int64(logEnd).int64(logEnd).int64(0).int32(noneAborted).int32(noReplica).bytes(Buffer.alloc(0))
  return out.finished()
}

test('the answer to a throttled fetch says nothing about the ends of logs', async () => {
  const { view, handle } = paused()
  let answers = 0
  let throttleMs = 0
  view.broker = async () =>
    brokerOf((apiKey) => {
      if (apiKey !== apis.fetch) return undefined
      const answer = emptyAnswer(throttleMs, ++answers === 1 ? 10 : undefined)
      return new Promise((resolve) => void setTimeout(resolve, 100, answer))
    })
  handle.resume()
  await vi.advanceTimersByTimeAsync(1_000)
  const { offset, atMs } = handle.end
  expect(offset).toBe(10)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(handle.end.atMs).toBeGreaterThan(atMs)
  throttleMs = 1_000
  await vi.advanceTimersByTimeAsync(1_000)
  const before = handle.end.atMs
  await vi.advanceTimersByTimeAsync(1_000)
  expect(handle.end.atMs).toBe(before)
})

test('a partition that throttles never let through is no trouble for five minutes, and then it is', async () => {
  const { view, handle } = paused()
  let throttleMs = 10_000
  view.broker = async () =>
    brokerOf((apiKey) => {
      if (apiKey !== apis.fetch) return undefined
      const answer = emptyAnswer(throttleMs, throttleMs === 0 ? 10 : undefined)
      return new Promise((resolve) => void setTimeout(resolve, 1_000, answer))
    })
  handle.resume()
  await vi.advanceTimersByTimeAsync(4 * 60_000)
  expect(handle.trouble).toBeUndefined()
  await vi.advanceTimersByTimeAsync(2 * 60_000)
  expect(handle.trouble).toContain('consumer_byte_rate')
  throttleMs = 0
  await vi.advanceTimersByTimeAsync(10_000)
  expect(handle.trouble).toBeUndefined()
})

/** Returns the answer to a fetch of a session, with a batch of ten records, the first at the offset 10. */
function fullAnswer(value: string): Buffer {
  const records = Array.from({ length: 10 }, () => ({ key: 'k', value }))
  const batch = encodeBatch(encodeRecords(records), { baseOffset: 10, count: 10 })
  const [noneAborted, noReplica] = [-1, -1]
  const out = new ByteWriter()
    .int32(0)
    .int16(0)
    .int32(7)
    .int32(1)
    .string('retry.1h')
    .int32(1)
    .int32(0)
    .int16(0)
  return out.int64(20).int64(20).int64(0).int32(noneAborted).int32(noReplica).bytes(batch).finished()
}

test.each([
  ['while it was paused', true],
  ['after another leader was found to have the records before it', false],
])('what a former leader had behind the position is not taken, if it came %s', async (_when, isKept) => {
  const taken: string[] = []
  const { view, handle, leaderLog } = paused({
    batch: ({ records }) => void taken.push(...records.map(({ value }) => String(value))),
  })
  const former = Promise.withResolvers<Buffer>()
  let requests = 0
  const leader = leaderOf({ ...leaderLog, end: 10 })
  view.broker = async () =>
    brokerOf((apiKey) => (apiKey === apis.fetch ? (requests++, former.promise) : undefined))
  handle.resume()
  await vi.advanceTimersByTimeAsync(100)
  expect(requests).toBe(1)
  handle.pause()
  if (isKept) former.resolve(fullAnswer('lost'))
  await vi.advanceTimersByTimeAsync(100)
  view.broker = async () => leader
  view.lead(1)
  await vi.advanceTimersByTimeAsync(1_000)
  view.broker = async () =>
    brokerOf((apiKey) => (apiKey === apis.fetch ? Promise.resolve(fullAnswer('written')) : undefined))
  handle.resume()
  former.resolve(fullAnswer('lost'))
  await vi.advanceTimersByTimeAsync(1_000)
  expect(taken.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => 'written'))
  handle.pause()
})
