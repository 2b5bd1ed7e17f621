import { expect, test } from 'vitest'
import { QueuedBefore } from '../../../src/waiting/queued-before.ts'

const message = (
  offset: number,
  { messageId = `m${offset}`, destinationId = 'a', topic = 'events' } = {},
) => {
  const origin = { topic, partition: 3, offset }
  return { destinationId, messageId, origin, source: origin, isReplayed: false }
}

test('a message is known by its destination, its record and its id', () => {
  const before = new QueuedBefore()
  before.note(message(5), true)
  expect(before.has(message(5))).toBe(true)
  expect(before.has(message(6))).toBe(false)
  expect(before.has(message(5, { destinationId: 'b' }))).toBe(false)
  expect(before.has(message(5, { topic: 'deletions' }))).toBe(false)
  // The topic was created again, so another message has this offset.
  expect(before.has(message(5, { messageId: 'other' }))).toBe(false)
})

test('a message of which it is not certain that it stays counts as not queued, and as one that came later', () => {
  const before = new QueuedBefore()
  before.note(message(5), false)
  expect(before.has(message(5))).toBe(false)
  expect(before.hasLater(message(4))).toBe(true)
})

test('a message that was queued from a retry topic is known by its retry and by its origin', () => {
  const before = new QueuedBefore()
  const source = { topic: 'retry.1m', partition: 3, offset: 2 }
  before.note({ ...message(5), source }, true)
  expect(before.has({ ...message(5), source })).toBe(true)
  expect(before.has({ ...message(5), source: { ...source, offset: 1 } })).toBe(false)
  expect(before.has(message(5))).toBe(true)
})

test('a message that a replay has queued is not the delivery that was made from its origin', () => {
  const before = new QueuedBefore()
  const source = { topic: 'replays', partition: 3, offset: 2 }
  before.note({ ...message(5), source, isReplayed: true }, true)
  expect(before.has({ ...message(5), source })).toBe(true)
  expect(before.has(message(5))).toBe(false)
  expect(before.hasLater(message(3))).toBe(false)
})

test('a message that was read before a queued one of its destination is overtaken by it', () => {
  const before = new QueuedBefore()
  before.note(message(5), true)
  before.note(message(4), true)
  expect(before.hasLater(message(3))).toBe(true)
  expect(before.hasLater(message(5))).toBe(false)
  expect(before.hasLater(message(3, { destinationId: 'b' }))).toBe(false)
  expect(before.hasLater(message(3, { topic: 'deletions' }))).toBe(false)
})

test('what is forgotten of one topic stays known of the others', () => {
  const before = new QueuedBefore()
  before.note(message(5), true)
  before.note(message(5, { topic: 'deletions' }), true)
  before.forget('events')
  expect(before.has(message(5))).toBe(false)
  expect(before.hasLater(message(3))).toBe(false)
  expect(before.has(message(5, { topic: 'deletions' }))).toBe(true)
})

test('only the last 8,192 are remembered', () => {
  const before = new QueuedBefore()
  for (let offset = 0; offset <= 8_192; offset++) before.note(message(offset), true)
  expect(before.has(message(0))).toBe(false)
  expect(before.has(message(1))).toBe(true)
  expect(before.has(message(8_192))).toBe(true)
})
