import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../../src/catalog/catalog.ts'
import { Availability } from '../../../src/gateway/availability.ts'
import { Outbox } from '../../../src/gateway/outbox.ts'
import { Sources } from '../../../src/gateway/sources.ts'
import { createTracking, type Tracking } from '../../../src/gateway/tracking.ts'
import { defaultLimits } from '../../../src/message/limits.ts'

function now(): number {
  return performance.now()
}

function nothing(): void {}

const slow = {
  id: 'slow',
  name: 'slow',
  kind: 'events' as const,
  enabled: true,
  writeKeys: ['KEY'],
  serverKeys: [],
  maxPerSecond: 1,
}
const free = { ...slow, id: 'free', name: 'free', writeKeys: ['FREE'], maxPerSecond: undefined }
const catalog = createCatalog([slow, free], [], '1')

/** Of a source that may send one message a second, before a Kafka that answers when `isUp`. */
function trackingOf(kafka: { isUp: boolean }): Tracking {
  return createTracking({
    sources: new Sources(() => catalog, now),
    outbox: new Outbox({
      sender: {
        send: (produces, _road, onSettled) => {
          if (kafka.isUp) for (const produce of produces) onSettled(produce, undefined)
        },
      },
      availability: new Availability({
        topics: ['events'],
        partitions: 3,
        check: async () => [],
        onChange: nothing,
        now,
      }),
      lingerMs: 1,
      ackTimeoutMs: 50,
      bufferBytes: 5_000,
      now,
    }),
    observer: {
      answered: nothing,
      acknowledged: nothing,
      leftOut: nothing,
      coalesced: nothing,
      digitsLost: nothing,
      failed: nothing,
    },
    topic: 'events',
    partitions: 3,
    limits: defaultLimits,
    now: Date.now,
  })
}

const message = '{"type":"page","userId":"u"}'
const large = Buffer.from(`{"batch":[${Array(100).fill(message).join(',')}]}`)
const small = Buffer.from(`{"batch":[${message}]}`)
const authorization = 'Basic S0VZOg=='

describe('a source that may send one message a second', () => {
  test('has spent nothing on what was answered 503, since the buffer was full or Kafka too slow', async () => {
    const kafka = { isUp: false }
    const tracking = trackingOf(kafka)
    expect(await tracking.handle('batch', large, authorization, undefined)).toMatchObject({ status: 503 })
    expect(await tracking.handle('batch', small, authorization, undefined)).toMatchObject({ status: 503 })
    expect(tracking.refusal(authorization)).toBeUndefined()
  })

  test('is refused by its key alone when it has spent it', async () => {
    const tracking = trackingOf({ isUp: true })
    expect(await tracking.handle('batch', small, authorization, undefined)).toMatchObject({ status: 200 })
    expect(tracking.refusal(authorization)).toMatchObject({ status: 429, retryAfterS: 1 })
    expect(await tracking.handle('batch', Buffer.from('{'), authorization, undefined)).toMatchObject({
      status: 429,
    })
  })
  test('is refused by a key in a body that is not read, when it has spent it', async () => {
    const tracking = trackingOf({ isUp: true })
    const send = (text: string) => tracking.handle('batch', Buffer.from(text), undefined, undefined)
    expect(await send(`{"writeKey":"KEY","batch":[${message}]}`)).toMatchObject({ status: 200 })
    expect(await send('{"writeKey":"KEY","batch":[')).toMatchObject({ status: 429, retryAfterS: 1 })
    expect(await send('{"writeKey":"FREE","batch":[{"writeKey":"KEY"}')).toMatchObject({ status: 400 })
    expect(await send('{"writeKey":"KEY","batch":[{"writeKey":"NOPE"}')).toMatchObject({ status: 429 })
  })
})
