import { expect, test } from 'vitest'
import { QueuedBefore } from '../../../src/waiting/queued-before.ts'

const message = (
  offset: number,
  { messageId = `m${offset}`, destinationId = 'a', topic = 'events' } = {},
) => ({
  destinationId,
  messageId,
  origin: { topic, partition: 3, offset },
})

const headers = (offset: number, topic = 'events') => ({
  origin: `${topic}/3/${offset}`,
  'destination-id': 'a',
  'message-id': `m${offset}`,
})

test('a message is known by its destination, its origin and its id', () => {
  const before = new QueuedBefore()
  before.note(headers(5))
  expect(before.has(message(5))).toBe(true)
  expect(before.has(message(6))).toBe(false)
  expect(before.has(message(5, { destinationId: 'b' }))).toBe(false)
  expect(before.has(message(5, { topic: 'deletions' }))).toBe(false)
  // The topic was created again, so another message has this offset.
  expect(before.has(message(5, { messageId: 'other' }))).toBe(false)
})

test('a message that was read before a queued one of its destination is overtaken by it', () => {
  const before = new QueuedBefore()
  before.note(headers(5))
  before.note(headers(4))
  expect(before.hasLater(message(3))).toBe(true)
  expect(before.hasLater(message(5))).toBe(false)
  expect(before.hasLater(message(3, { destinationId: 'b' }))).toBe(false)
  expect(before.hasLater(message(3, { topic: 'deletions' }))).toBe(false)
})

test('what is forgotten of one topic stays known of the others', () => {
  const before = new QueuedBefore()
  before.note(headers(5))
  before.note(headers(5, 'deletions'))
  before.forget('events')
  expect(before.has(message(5))).toBe(false)
  expect(before.hasLater(message(3))).toBe(false)
  expect(before.has(message(5, { topic: 'deletions' }))).toBe(true)
})

test('records without readable headers are passed over, and only the last 8,192 are remembered', () => {
  const before = new QueuedBefore()
  before.note({})
  before.note({ ...headers(1), origin: 'nonsense' })
  for (let offset = 0; offset < 8_193; offset++) before.note(headers(offset))
  expect(before.has(message(0))).toBe(false)
  expect(before.has(message(1))).toBe(true)
  expect(before.has(message(8_192))).toBe(true)
})
