import { expect, test } from 'vitest'
import { Fences } from '../../../src/waiting/fences.ts'

const unit = 3

const message = (offset: number, { messageId = `m${offset}`, topic = 'events', partition = unit } = {}) => ({
  destinationId: 'a',
  messageId,
  source: { topic, partition, offset },
})

test('what others append of a topic is void from the first offset that this owner knows to be later than its beginning', () => {
  const fences = new Fences(unit)
  expect(fences.isVoid(100, message(5))).toBe(false)
  expect(fences.begin(message(1), 100)).toBe(true)
  expect(fences.begin(message(2), 100)).toBe(false)
  const [first, second] = [fences.ahead(), fences.ahead()]
  expect(fences.isVoid(100, message(5))).toBe(false)
  second(120)
  first(110)
  expect(fences.isVoid(109, message(5))).toBe(false)
  expect(fences.isVoid(110, message(5))).toBe(true)
  expect(fences.isVoid(110, message(5, { topic: 'deletions' }))).toBe(false)
  // Before a growth of the topics, it was a message of another unit.
  expect(fences.isVoid(110, message(5, { partition: 0 }))).toBe(false)
})

test('an offset that was asked for before a topic has begun is no fence of the topic', () => {
  const fences = new Fences(unit)
  const before = fences.ahead()
  fences.begin(message(1), 100)
  before(100)
  expect(fences.isVoid(100, message(5))).toBe(false)
  fences.begin(message(1, { topic: 'deletions' }), 100)
  fences.ahead()(101)
  expect(fences.isVoid(101, message(5))).toBe(true)
  expect(fences.isVoid(101, message(5, { topic: 'deletions' }))).toBe(true)
})

test('before the fence, the messages are void that this owner has begun, until it knows all records before the fence', () => {
  const fences = new Fences(unit)
  fences.begin(message(1), 100)
  fences.ahead()(110)
  fences.begin(message(2), 100)
  expect(fences.isVoid(105, message(1))).toBe(true)
  expect(fences.isVoid(105, message(2))).toBe(true)
  expect(fences.isVoid(105, message(3))).toBe(false)
  expect(fences.isVoid(105, message(2, { messageId: 'of a former log' }))).toBe(false)
  fences.begin(message(3), 110)
  expect(fences.isVoid(109, message(2))).toBe(false)
})

test('only the last 8,192 messages that were begun are remembered', () => {
  const fences = new Fences(unit)
  for (let offset = 0; offset <= 8_192; offset++) fences.begin(message(offset), 0)
  expect(fences.isVoid(0, message(0))).toBe(false)
  expect(fences.isVoid(0, message(1))).toBe(true)
})
