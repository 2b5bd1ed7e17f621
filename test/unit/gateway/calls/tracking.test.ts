import { describe, expect, test } from 'vitest'
import { client, trackingOf } from '../../../support/tracking.ts'

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

/**
 * Returns the tracking of two sources. One source may send one message a second, and the other has no limit.
 */
function trackingBefore(kafka: { isUp: boolean }) {
  return trackingOf({ sources: [slow, free], isUp: () => kafka.isUp, ackTimeoutMs: 50, bufferBytes: 5_000 })
}

const message = '{"type":"page","userId":"u"}'
const large = Buffer.from(`{"batch":[${Array(100).fill(message).join(',')}]}`)
const small = Buffer.from(`{"batch":[${message}]}`)
const authorization = 'Basic S0VZOg=='

describe('a source that may send one message a second', () => {
  test('has spent nothing on what was answered 503, since the buffer was full or Kafka too slow', async () => {
    const kafka = { isUp: false }
    const tracking = trackingBefore(kafka)
    expect(await tracking.handle('batch', large, authorization, client)).toMatchObject({ status: 503 })
    expect(await tracking.handle('batch', small, authorization, client)).toMatchObject({ status: 503 })
    expect(tracking.refusal(authorization)).toBeUndefined()
  })

  test('is refused by its key alone when it has spent it', async () => {
    const tracking = trackingBefore({ isUp: true })
    expect(await tracking.handle('batch', small, authorization, client)).toMatchObject({ status: 200 })
    expect(tracking.refusal(authorization)).toMatchObject({ status: 429, retryAfterS: 1 })
    expect(await tracking.handle('batch', Buffer.from('{'), authorization, client)).toMatchObject({
      status: 429,
    })
  })

  test('is known by a key whose name is spelled with an escape', async () => {
    const tracking = trackingBefore({ isUp: true })
    const send = (text: string) => tracking.handle('page', Buffer.from(text), undefined, client)
    expect(await send('{"write\\u004bey":"FREE","userId":"u"}')).toMatchObject({ status: 200 })
    expect(await send('{"write\\u004bey":"NOPE","userId":"u"}')).toMatchObject({ status: 401 })
  })

  test('is refused by a key in a body that is not read, when it has spent it', async () => {
    const tracking = trackingBefore({ isUp: true })
    const send = (text: string) => tracking.handle('batch', Buffer.from(text), undefined, client)
    expect(await send(`{"writeKey":"KEY","batch":[${message}]}`)).toMatchObject({ status: 200 })
    expect(await send('{"writeKey":"KEY","batch":[')).toMatchObject({ status: 429, retryAfterS: 1 })
    expect(await send('{"writeKey":"FREE","batch":[{"writeKey":"KEY"}')).toMatchObject({ status: 400 })
    expect(await send('{"writeKey":"KEY","batch":[{"writeKey":"NOPE"}')).toMatchObject({ status: 429 })
  })
})
