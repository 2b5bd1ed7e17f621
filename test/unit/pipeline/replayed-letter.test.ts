import { expect, test } from 'vitest'
import { chooseLetter } from '../../../src/replay/letter.ts'
import { choiceFor } from './replay-choice.ts'
import { destinationOf, hour, stage, type StageOptions, startMs, taken, TestRecord } from './stage.ts'

// A dead letter that never had a destination, because its source was unknown. A replay sends it again.

const body = JSON.stringify({ type: 'track', userId: 'u1', event: 'E', messageId: 'm-1' })
const crm = destinationOf('crm', { sources: ['shop'] })
/** Replays the dead letter, and hands what the replay writes to a pipeline whose users may have been deleted. */
async function replayed(options: StageOptions = {}) {
  const letter = {
    partition: 2,
    offset: 1,
    timestampMs: startMs,
    key: Buffer.from('u1'),
    value: Buffer.from(body),
    headers: {
      'source-id': 'shop',
      reason: 'unknown_source',
      origin: 'events/2/7',
      'first-seen': String(startMs - hour),
    },
  }
  const chosen = chooseLetter(letter, { selection: { from: 'dead-letters' }, ...choiceFor(crm) })
  if (chosen.kind !== 'send') throw new Error(JSON.stringify(chosen))
  const [sent] = chosen.records
  const all = stage({
    destinations: [crm],
    sources: { shop: {} },
    needsJudging: () => true,
    topics: { events: 'events', replays: 'replays', retryPrefix: 'retry.', deadLetters: 'dead-letters' },
    ...options,
  })
  const record = new TestRecord(sent?.topic ?? '', 7)
  all.pipeline.accept(record, {
    key: sent?.key ?? null,
    value: sent?.value ?? null,
    headers: sent?.headers ?? {},
  })
  await all.settle()
  return { ...all, record }
}

test('is left out if its user was deleted after it had come first', async () => {
  const { posted, judged, told, record } = await replayed({ judge: async () => ({ kind: 'suppressed' }) })
  expect(judged).toMatchObject([{ unit: 2, sourceId: 'shop', firstSeenMs: startMs - hour }])
  expect(posted).toEqual([])
  expect(told).toMatchObject([expect.stringMatching(/^suppressed crm/)])
  expect(record.settled).toBe(1)
})

test('is sent otherwise', async () => {
  const { record, ...all } = await replayed()
  await all.answer(taken)
  expect(all.told).toMatchObject([expect.stringMatching(/^delivered crm/)])
  expect(record.settled).toBe(1)
})
