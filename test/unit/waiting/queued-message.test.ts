import { expect, test } from 'vitest'
import { queuedMessage, sourceHeaders } from '../../../src/waiting/queued-message.ts'

const place = { topic: 'events', partition: 3, offset: 5 }
const headers = { origin: 'events/3/5', 'destination-id': 'a', 'message-id': 'm' }
const message = { destinationId: 'a', messageId: 'm', origin: place }

test('a record names its source only if this is not its origin', () => {
  expect(sourceHeaders(headers, place)).toEqual({})
  expect(sourceHeaders(headers, undefined)).toEqual({})
  expect(queuedMessage(headers, 'fresh')).toEqual({ ...message, source: place, isReplayed: false })
  const source = { topic: 'retry.1m', partition: 3, offset: 0 }
  const named = { ...headers, ...sourceHeaders(headers, source) }
  expect(queuedMessage(named, 'retry')).toEqual({ ...message, source, isReplayed: false })
})

test('the source of a replayed message is never its origin', () => {
  expect(queuedMessage(headers, 'backfill')).toBeUndefined()
  const source = { topic: 'replays', partition: 3, offset: 0 }
  const named = { ...headers, ...sourceHeaders(headers, source) }
  expect(queuedMessage(named, 'backfill')).toEqual({ ...message, source, isReplayed: true })
})

test('a record without readable headers is nobody’s message', () => {
  expect(queuedMessage({}, 'fresh')).toBeUndefined()
  expect(queuedMessage({ ...headers, origin: 'nonsense' }, 'fresh')).toBeUndefined()
  expect(queuedMessage({ ...headers, 'queued-from': 'nonsense' }, 'fresh')).toBeUndefined()
  expect(queuedMessage({ ...headers, 'message-id': undefined }, 'fresh')).toBeUndefined()
})
