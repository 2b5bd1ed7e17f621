import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Mapping } from '../../../src/shape/definition.ts'
import { chooseLetter } from '../../../src/replay/letter.ts'
import { choiceFor } from './replay-choice.ts'
import { destinationOf, failed, refused, stage, type Stage, startMs, taken, TestRecord } from './stage.ts'

const sources = { shop: {}, space: { kind: 'audiences' } } as const
const first: Mapping = {
  method: 'PUT',
  path: '/users/{{userId}}',
  headers: { 'X-Event': { '@path': '$.event' } },
  body: { name: { '@path': '$.event' }, v: 1 },
}
const second: Mapping = { body: { other: { '@path': '$.userId' } } }

function stageWith(mappings: readonly Mapping[] | undefined, more: object = {}): Stage {
  const crm = destinationOf('crm', { sources: ['shop', 'space'], mappings, sharedSecret: 's3cret', ...more })
  return stage({ sources, destinations: [crm] })
}

function accept(all: Stage, message: object = {}): TestRecord {
  const record = new TestRecord('events', 0)
  const value = Buffer.from(
    JSON.stringify({ type: 'track', event: 'Bought', userId: 'u1', messageId: 'm1', ...message }),
  )
  all.pipeline.accept(record, { key: Buffer.from('u1'), value, headers: { 'source-id': 'shop' } })
  return record
}

function signatureOf(body: string): string {
  return createHmac('sha1', 's3cret').update(body).digest('hex')
}

test('a mapping makes the request, and the signature is of the bytes that are sent', async () => {
  const all = stageWith([first])
  const record = accept(all)
  await all.settle()
  expect(all.posted).toMatchObject([
    {
      body: '{"name":"Bought","v":1}',
      own: { method: 'PUT', path: '/users/u1' },
      headers: ['X-Signature', signatureOf('{"name":"Bought","v":1}')],
    },
  ])
  expect(all.posted[0]?.own?.headers).toEqual(expect.arrayContaining(['X-Event', 'Bought']))
  await all.answer(taken)
  expect(record.settled).toBe(1)
})

test('a retry makes the same request, though the mapping was edited or removed since its first try', async () => {
  const before = stageWith([first])
  accept(before)
  await before.settle()
  const [sent] = before.posted
  await before.answer(failed)
  // What waits is the message itself, so that a replay can make another request of it.
  expect(String(before.written[0]?.value)).toContain('"messageId":"m1"')
  for (const mappings of [[second], undefined]) {
    const after = stageWith(mappings)
    after.retry(before.written[0])
    await after.settle()
    expect(after.posted).toMatchObject([{ body: sent?.body, own: sent?.own, headers: sent?.headers }])
    await after.answer(failed)
    // And so does the one after it.
    expect(after.written[0]?.headers['mapping']).toBe(before.written[0]?.headers['mapping'])
  }
})

test('a message that was sent as it is, is so again, though its destination has a mapping now', async () => {
  const before = stageWith(undefined)
  accept(before)
  await before.settle()
  const [sent] = before.posted
  await before.answer(failed)
  expect(before.written[0]?.headers).not.toHaveProperty('mapping')
  const after = stageWith([first])
  after.retry(before.written[0])
  await after.settle()
  expect(after.posted).toMatchObject([{ body: sent?.body, own: undefined }])
})

test('a message that has only waited is sent by the mapping of its first try', async () => {
  const before = stageWith([first], { state: 'paused' })
  accept(before)
  await before.settle()
  expect(before.written).toHaveLength(1)
  const after = stageWith([second])
  after.retry(before.written[0])
  await after.settle()
  expect(after.bodies()).toEqual(['{"other":"u1"}'])
})

test('messages that no mapping is for use nothing of the rate limit', async () => {
  const all = stageWith([{ condition: 'event == "Bought"', body: 1 }], {
    rateLimit: { perSecond: 0.01, burst: 1 },
  })
  for (let index = 0; index < 20; index++) accept(all, { event: 'Seen', messageId: `seen-${index}` })
  accept(all)
  await all.settle()
  expect(all.bodies()).toEqual(['1'])
  accept(all, { messageId: 'm2' })
  await all.settle()
  expect(all.bodies()).toEqual(['1'])
})

test('values of audiences and deletes are made by a mapping, and sent as they are if none is for them', async () => {
  const all = stageWith([{ condition: 'type == "identify"', body: { who: { '@path': '$.userId' } } }])
  all.identify('{"type":"identify","userId":"u2"}')
  all.pipeline.acceptDelete(new TestRecord('deletions', 0), {
    userId: 'u',
    deletes: [{ sourceId: 'shop', messageId: 'd1', body: Buffer.from('{"type":"delete"}') }],
  })
  await all.settle()
  expect(all.bodies()).toEqual(['{"who":"u2"}', '{"type":"delete"}'])
})

test('a message that no mapping is for is not sent, and counted', async () => {
  const all = stageWith([{ condition: 'type == "identify"', body: 1 }])
  const record = accept(all)
  await all.settle()
  expect([all.posted, record.settled]).toEqual([[], 1])
  expect(all.told).toEqual(['not routed: filtered_by_destination'])
})

test('one that waits, and that no mapping is for by now, is not sent either', async () => {
  const before = stageWith([first], { state: 'paused' })
  accept(before)
  await before.settle()
  const after = stageWith([{ condition: 'type == "identify"', body: 1 }])
  const record = after.retry(before.written[0])
  await after.settle()
  expect([after.posted, record.settled]).toEqual([[], 1])
  expect(after.told).toEqual(['not routed: filtered_by_destination'])
})

test.each<[Mapping, string]>([
  [{ body: { '@path': '$.no' } }, 'mapping_failed'],
  [{ path: '/{{properties.id}}' }, 'mapping_failed'],
  [{ condition: 'int(event) == 1' }, 'filter_failed'],
])('a message of which %j makes nothing becomes a dead letter: %s', async (mapping, reason) => {
  const all = stageWith([mapping])
  const record = accept(all)
  await all.settle()
  expect([all.posted, record.settled]).toEqual([[], 1])
  expect(all.told).toEqual([`dead crm: ${reason}`])
  const [letter] = all.written
  expect(letter).toMatchObject({ topic: 'dead-letters', headers: { reason, 'destination-id': 'crm' } })
  expect(letter?.headers['detail']).not.toContain('Bought')
  expect(letter?.headers['detail']).toContain('sluice mappings test')
})

test('a replay makes the request anew, by the mapping that the destination has then', async () => {
  const before = stageWith([first])
  accept(before)
  await before.settle()
  await before.answer(refused)
  const [letter] = before.written
  if (letter === undefined) throw new Error('there is no dead letter')
  expect(letter.headers['mapping']).toContain('"method":"PUT"')
  const crm = destinationOf('crm', { sources: ['shop'], mappings: [second] })
  const chosen = chooseLetter(
    { ...letter, offset: 0, timestampMs: startMs },
    { selection: { from: 'dead-letters' }, ...choiceFor(crm) },
  )
  if (chosen.kind !== 'send') throw new Error(JSON.stringify(chosen))
  const after = stageWith([second])
  after.retry(chosen.records[0])
  await after.settle()
  expect(after.bodies()).toEqual(['{"other":"u1"}'])
})

test('a mapping that another program wrote, or a newer version, is not guessed', async () => {
  const before = stageWith([first])
  accept(before)
  await before.settle()
  await before.answer(failed)
  const [waiting] = before.written
  if (waiting === undefined) throw new Error('nothing waits')
  for (const mapping of ['{', '[]', '{"body":{"@new":1}}', 'x']) {
    const after = stageWith([second])
    after.retry({ ...waiting, headers: { ...waiting.headers, mapping } })
    await after.settle()
    expect([after.posted, after.told]).toEqual([[], ['dead crm: mapping_failed']])
  }
})
