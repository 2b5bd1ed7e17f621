import { expect, test } from 'vitest'
import { faultsOf } from './additions.ts'
import { isObject, type JsonObject, readObject, type SentMessage } from './sent-message.ts'

/**
 * Tests of `faultsOf`, on which the other tests of this folder rely. It has to find every fault that a
 * gateway or a worker could make.
 */

const startedMs = Date.parse('2026-01-02T03:04:05.000Z')

const sent: SentMessage = {
  kind: undefined,
  message: read(`{
    "type": "alias", "messageId": "m1", "userId": "u1", "previousId": "p1", "timestamp": "2026-01-02T03:04:00+0000",
    "context": {"ip": "203.0.113.7", "own": {"__proto__": {"a": 1}}}, "integrations": {"A": false},
    "properties": {"list": [1, [null, {"a": "b"}]], "__proto__": {"b": 2}, "nothing": null, "empty": {}}
  }`),
  shared: {
    context: { library: { name: 'client', version: '1' }, ip: 'of the batch' },
    integrations: { All: true, A: true },
    sentAt: '2026-01-02T03:04:02.000Z',
  },
  exchange: {
    method: 'POST',
    path: '/v1/batch',
    headers: {},
    body: Buffer.alloc(0),
    startedMs,
    answer: { status: 200, headers: new Map(), body: '', atMs: startedMs + 20 },
  },
}

const arrived = read(`{
  "version": 1, "type": "alias", "messageId": "m1", "userId": "u1", "previousId": "p1",
  "User ID": "u1", "Previous ID": "p1", "timestamp": "2026-01-02T03:04:03.010Z",
  "originalTimestamp": "2026-01-02T03:04:00+0000", "sentAt": "2026-01-02T03:04:02.000Z",
  "receivedAt": "2026-01-02T03:04:05.010Z",
  "context": {"library": {"name": "client", "version": "1"}, "ip": "203.0.113.7", "own": {"__proto__": {"a": 1}}},
  "integrations": {"All": true, "A": false},
  "properties": {"list": [1, [null, {"a": "b"}]], "__proto__": {"b": 2}, "nothing": null, "empty": {}}
}`)

test('what arrives with all that is added has no fault', () => {
  expect(faultsOf(sent, arrived)).toEqual([])
})

test('a field or item that is missing, is another, or is too many is a fault, wherever it is', () => {
  const changed = [...changes(arrived)]
  expect(changed.length).toBeGreaterThan(60)
  expect(changed.filter((message) => isObject(message) && faultsOf(sent, message).length === 0)).toEqual([])
})

function read(text: string): JsonObject {
  return readObject(Buffer.from(text))
}

/** Yields copies of a value. Each copy has one change. */
function* changes(value: unknown): Generator {
  if (Array.isArray(value)) {
    yield [...value, 'too many']
    for (const [index, item] of value.entries()) {
      yield value.toSpliced(index, 1)
      for (const other of changes(item)) yield value.with(index, other)
    }
  } else if (isObject(value)) {
    yield { ...value, 'too many': null }
    for (const [name, item] of Object.entries(value)) {
      yield Object.fromEntries(Object.entries(value).filter(([other]) => other !== name))
      // With a computed name, even `__proto__` becomes a field of the object itself.
      for (const other of changes(item)) yield { ...value, [name]: other }
    }
  } else {
    yield 'another'
    if (value !== null) yield null
  }
}
