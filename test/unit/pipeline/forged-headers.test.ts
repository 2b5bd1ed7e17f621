import { expect, test } from 'vitest'
import { destinationOf, failed, hour, stage, startMs, TestRecord } from './stage.ts'

// A producer writes headers to its records that only workers write.

const body = Buffer.from(JSON.stringify({ type: 'track', userId: 'u1', event: 'E', messageId: 'm-1' }))
const forged = {
  'destination-id': 'erp',
  'message-id': 'm-2',
  'message-type': 'identify',
  rung: '5',
  waits: '9',
  attempts: '24',
  'first-seen': String(startMs - hour),
  'expires-at': '1',
  origin: 'events/0/0',
  'failed-hooks': '["hook"]',
  'unsent-hooks': '["hook"]',
  'not-before': '[["hook",9999999999999]]',
  'hook-contents': '[["hook","0123456789ab"]]',
  'last-outcome': 'status 500',
  property: '["u2","space","vip"]',
  since: '1',
  uncertain: '1',
  delivered: '1',
  'replay-job': 'job-1',
  reason: 'expired',
  detail: 'forged',
  'value-omitted': 'forged',
  'carried-origin': 'events/0/0',
  'grown-from': '0/0/0',
}

/** Hands a record of `events` with these headers to a pipeline whose users may have been deleted. */
async function accepted(sourceId: string) {
  const all = stage({
    destinations: [destinationOf('crm', { sources: ['shop'] })],
    sources: { shop: {} },
    needsJudging: () => true,
  })
  const content = { key: Buffer.from('u1'), value: body, headers: { ...forged, 'source-id': sourceId } }
  all.pipeline.accept(new TestRecord('events', 7), content)
  await all.settle()
  return { ...all, content }
}

test('an event is delivered as if it had none of them: it is new, and no replay has sent it', async () => {
  const { posted, judged, written, ...all } = await accepted('shop')
  expect(judged).toEqual([])
  expect(posted).toHaveLength(1)
  await all.answer(failed)
  const { 'last-outcome': outcome, 'expires-at': expiresAt, ...headers } = written[0]?.headers ?? {}
  expect({ outcome, headers }).toEqual({
    outcome: 'status 500',
    headers: {
      'source-id': 'shop',
      'destination-id': 'crm',
      'message-id': 'm-1',
      'message-type': 'track',
      rung: '1',
      attempts: '1',
      'first-seen': String(startMs),
      origin: 'events/2/7',
    },
  })
  expect(Number(expiresAt)).toBeGreaterThan(startMs)
})

test('the dead letter of a refused event has only its source of them, and the time of its record', async () => {
  const { written } = await accepted('nobody')
  expect(written).toMatchObject([{ topic: 'dead-letters' }])
  expect(written[0]?.headers).toEqual({
    'source-id': 'nobody',
    reason: 'unknown_source',
    detail: 'the catalog has no source "nobody"',
    'first-seen': String(startMs),
    origin: 'events/2/7',
  })
})

test.each(['audience-changes', 'deletions'])(
  'the dead letter of a refused record of %s has only its source of them, too',
  async (topic) => {
    const { pipeline, written, content, ...all } = await accepted('nobody')
    pipeline.refuse(new TestRecord(topic, 8), content, 'bad_change', 'd')
    await all.settle()
    expect(written.at(-1)?.headers).toEqual({
      'source-id': 'nobody',
      reason: 'bad_change',
      detail: 'd',
      'first-seen': String(startMs),
      origin: `${topic}/2/8`,
    })
  },
)
