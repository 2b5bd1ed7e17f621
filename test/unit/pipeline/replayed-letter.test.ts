import { expect, test } from 'vitest'
import { destinationOf, hour, stage, type StageOptions, startMs, taken, TestRecord } from './stage.ts'

// A dead letter that never had a destination. A replay has written it to `events` again.

const body = JSON.stringify({ type: 'track', userId: 'u1', event: 'E', messageId: 'm-1' })
const headers = { 'source-id': 'shop', 'replay-job': 'job-1', 'first-seen': String(startMs - hour) }

/** Hands a record of `events` to a pipeline whose users may have been deleted. */
async function accepted(given: Record<string, string>, options: StageOptions = {}) {
  const all = stage({
    destinations: [destinationOf('crm', { sources: ['shop'] })],
    sources: { shop: {} },
    needsJudging: () => true,
    ...options,
  })
  const record = new TestRecord('events', 7)
  all.pipeline.accept(record, { key: Buffer.from('u1'), value: Buffer.from(body), headers: given })
  await all.settle()
  return { ...all, record }
}

test('is left out if its user was deleted after it had come first', async () => {
  const { posted, judged, told, record } = await accepted(headers, {
    judge: async () => ({ kind: 'suppressed' }),
  })
  expect(judged).toMatchObject([{ unit: 2, sourceId: 'shop', firstSeenMs: startMs - hour }])
  expect(posted).toEqual([])
  expect(told).toMatchObject([expect.stringMatching(/^suppressed crm/)])
  expect(record.settled).toBe(1)
})

test('is sent otherwise', async () => {
  const { record, ...all } = await accepted(headers)
  await all.answer(taken)
  expect(all.told).toMatchObject([expect.stringMatching(/^delivered crm/)])
  expect(record.settled).toBe(1)
})

test('waits on the ladder while the deleted users of its unit are not known, and is then left out', async () => {
  let isKnown = false
  const { posted, judged, told, written, record, ...all } = await accepted(headers, {
    hasState: () => isKnown,
    needsJudging: () => isKnown,
    judge: async () => ({ kind: isKnown ? 'suppressed' : 'send' }),
  })
  expect(posted).toEqual([])
  expect(told).toMatchObject([expect.stringMatching(/^parked crm .*: handover$/)])
  expect(record.settled).toBe(1)
  isKnown = true
  all.retry(written[0])
  await all.settle()
  expect(judged).toMatchObject([{ firstSeenMs: startMs - hour }])
  expect(told.at(-1)).toMatch(/^suppressed crm/)
})

test('keeps the time at which it came first, and names its replay, if it is refused again', async () => {
  const { written } = await accepted({ ...headers, 'source-id': 'nobody' })
  const kept = { 'source-id': 'nobody', 'first-seen': String(startMs - hour), 'replay-job': 'job-1' }
  expect(written).toMatchObject([{ topic: 'dead-letters', headers: { reason: 'unknown_source', ...kept } }])
})

test.each([
  ['an event of a producer', { 'source-id': 'shop', 'first-seen': '1' }],
  ['a replayed one from an earlier version of Sluice', { 'source-id': 'shop', 'replay-job': 'job-1' }],
  ['a replayed one with a time that is none', { ...headers, 'first-seen': '-1' }],
])('%s has the time of its record', async (_what, given) => {
  const { written } = await accepted({ ...given, 'source-id': 'nobody' })
  expect(written).toMatchObject([{ headers: { 'first-seen': String(startMs) } }])
})
