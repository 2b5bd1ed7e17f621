import { expect, test } from 'vitest'
import { queuedHeaders, queuedMessage } from '../../../src/waiting/queued-message.ts'

const place = { topic: 'events', partition: 3, offset: 5 }
const headers = { origin: 'events/3/5', 'destination-id': 'a', 'message-id': 'm' }
const message = { destinationId: 'a', messageId: 'm', origin: place }

test('a record names its source only if this is not its origin', () => {
  const unnamed = { ...headers, queued: 'w/1/fresh' }
  expect(queuedHeaders(headers, place, 'w/1/fresh')).toEqual(unnamed)
  expect(queuedHeaders(headers, undefined, 'w/1/fresh')).toEqual(unnamed)
  expect(queuedMessage(headers, 'fresh')).toEqual({ ...message, source: place, isReplayed: false })
  const source = { topic: 'retry.1m', partition: 3, offset: 0 }
  const named = queuedHeaders(headers, source, 'w/1/retry')
  expect(queuedMessage(named, 'retry')).toEqual({ ...message, source, isReplayed: false })
})

test('the source of a replayed message is never its origin', () => {
  expect(queuedMessage(headers, 'backfill')).toBeUndefined()
  const source = { topic: 'replays', partition: 3, offset: 0 }
  const named = queuedHeaders(headers, source, 'w/1/backfill')
  expect(queuedMessage(named, 'backfill')).toEqual({ ...message, source, isReplayed: true })
})

test('a record without readable headers is nobody’s message', () => {
  expect(queuedMessage({}, 'fresh')).toBeUndefined()
  expect(queuedMessage({ ...headers, origin: 'nonsense' }, 'fresh')).toBeUndefined()
  expect(queuedMessage({ ...headers, 'queued-from': 'nonsense' }, 'fresh')).toBeUndefined()
  expect(queuedMessage({ ...headers, 'message-id': undefined }, 'fresh')).toBeUndefined()
})
