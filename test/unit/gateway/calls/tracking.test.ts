import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { RefusalBudgets } from '../../../../src/gateway/calls/refusal-budgets.ts'
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
    expect(tracking.refusal(authorization, { bytes: 0, client })).toBeUndefined()
  })

  test('is refused by its key alone when it has spent it', async () => {
    const tracking = trackingBefore({ isUp: true })
    expect(await tracking.handle('batch', small, authorization, client)).toMatchObject({ status: 200 })
    expect(tracking.refusal(authorization, { bytes: 0, client })).toMatchObject({
      status: 429,
      retryAfterS: 1,
    })
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

const half = (body: Buffer) => body.subarray(0, body.length / 2)

function calls() {
  // Each look at this clock takes 20 ms, so each request seems to take that long.
  const clock = { nowMs: 0, stepMs: 20 }
  const budgets = new RefusalBudgets(() => (clock.nowMs += clock.stepMs))
  const tracking = trackingOf({ sources: [slow, free], ackTimeoutMs: 50, bufferBytes: 2 ** 30, budgets })
  const send = async (body: Buffer, address = client.address) => {
    const answer = await tracking.handle('batch', Buffer.from(body), undefined, { ...client, address })
    return answer.code ?? answer.status
  }
  const refusal = (bytes: number, address: string, key = 'FREE') =>
    tracking.refusal(`Bearer ${key}`, { bytes, client: { ...client, address } })?.code
  return { send, clock, refusal, tracking }
}

test('a client whose requests were refused too often is refused by the head of a large request, and nobody else is', async () => {
  const { clock, refusal, tracking } = calls()
  const { address } = client
  const damaged = Buffer.from(`{"batch":[${' '.repeat(400_000)}`)
  let sent = 0
  while (refusal(500_000, address) === undefined) {
    expect(++sent).toBeLessThan(1_000)
    await tracking.handle('batch', damaged, 'Bearer FREE', client)
  }
  clock.stepMs = 0
  expect(refusal(500_000, address)).toBe('refused_too_often')
  // A short request is read, and so is one that doesn't say its length.
  expect(refusal(8_192, address)).toBeUndefined()
  expect(refusal(0, address)).toBeUndefined()
  expect(refusal(500_000, '203.0.113.8')).toBeUndefined()
  expect(refusal(500_000, address, 'KEY')).toBeUndefined()
})

describe('a source over its rate whose key is only in a body in gzip', () => {
  const messages = Array.from({ length: 100 }, () => ({
    type: 'page',
    userId: 'u',
    messageId: randomUUID(),
  }))
  const first = (writeKey: string) => gzipSync(JSON.stringify({ writeKey, batch: messages }))
  const last = (writeKey: string) => gzipSync(JSON.stringify({ batch: messages, writeKey }))

  test('is refused by the beginning of its body, and others at its address are not', async () => {
    const { send } = calls()
    expect(await send(first('KEY'))).toBe(200)
    expect(await send(first('KEY'))).toBe('rate_limited')
    expect(await send(half(first('KEY')))).toBe('rate_limited')
    expect(await send(first('FREE'))).toBe(200)
    expect(await send(last('FREE'))).toBe(200)
    expect(await send(half(first('FREE')))).toBe('malformed_json')
  })

  test('is charged if its key comes after its messages, and then keeps nobody from sending whose key comes first', async () => {
    const { send, clock } = calls()
    expect(await send(last('KEY'))).toBe(200)
    let sent = 0
    while ((await send(last('KEY'))) === 'rate_limited') expect(++sent).toBeLessThan(1_000)
    clock.stepMs = 0
    expect(await send(half(last('KEY')))).toBe('refused_too_often')
    expect(await send(last('FREE'))).toBe('refused_too_often')
    expect(await send(first('FREE'))).toBe(200)
    expect(await send(last('FREE'), '203.0.113.8')).toBe(200)
    expect(sent).toBeGreaterThan(20)
  })
})

test('in a dense body, a message that has no room for what it has is left out unread, and its neighbours are taken', async () => {
  const answers = trackingOf({ sources: [free], ackTimeoutMs: 50, bufferBytes: 2 ** 30 })
  const tooLarge = { type: 'track', userId: 'u', event: 'E', properties: { text: 'x'.repeat(133_000) } }
  const page = { type: 'page', userId: 'u', messageId: 'small' }
  const batch = [page, tooLarge, 'y'.repeat(133_000), { ...page, messageId: 'last' }]
  const answer = await answers.handle('batch', gzipSync(JSON.stringify({ batch })), 'Bearer FREE', client)
  expect([answer.status, JSON.parse(answer.body)]).toEqual([
    200,
    {
      success: true,
      rejected: [
        { index: 1, reason: 'message_too_large' },
        { index: 2, reason: 'message_too_large' },
      ],
      rejectedCount: 2,
    },
  ])
})

/** Returns JSON as Python's json.dumps writes it. */
function asPython(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(asPython).join(', ')}]`
  if (typeof value !== 'object' || value === null) return asAscii(value)
  return `{${Object.entries(value)
    .map(([name, one]) => `"${name}": ${asPython(one)}`)
    .join(', ')}}`
}

/** Returns JSON as PHP's json_encode writes it. */
const asPhp = (value: unknown): string => asAscii(value).replaceAll('/', '\\/')

function asAscii(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\u0080-\uffff]/g,
    (letter) => `\\u0${letter.charCodeAt(0).toString(16)}`,
  )
}

const products = (count: number): object[] =>
  Array.from({ length: count }, (_, index) => ({
    product_id: `p${index}`,
    sku: `G-${index}`,
    name: `Game ${index % 7}`,
    price: 14 + index / 4,
    quantity: 7,
    url: `https://example.org/p/${index}`,
  }))

const flags = (count: number): object =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`feature_flag_${index}`, index % 3 === 0]))

describe('events that differ only in their ids and times are taken, although gzip makes 1 to 2 KB of them:', () => {
  test.each([
    ['45 with 4 products, of Python', 45, asPython, products(4)],
    ['18 with 16 products, of Python', 18, asPython, products(16)],
    ['24 with a text in Cyrillic, of Python', 24, asPython, 'заказ оплачен и отправлен сегодня '.repeat(20)],
    ['3 with 60 products, of Python', 3, asPython, products(60)],
    ['5 with 180 flags, of Python', 5, asPython, flags(180)],
    ['14 with 16 products, of PHP', 14, asPhp, products(16)],
    ['3 with 200 flags, of a browser', 3, JSON.stringify, flags(200)],
    ['24 with 30 products, of a browser', 24, JSON.stringify, products(30)],
  ])('%s', async (_what, count, write, content) => {
    const answers = trackingOf({ sources: [free], ackTimeoutMs: 60_000, bufferBytes: 2 ** 30 })
    const batch = Array.from({ length: count }, (_, index) =>
      write({
        type: 'track',
        event: 'Order Completed',
        userId: 'user-1',
        properties: { content },
        context: { library: { name: 'analytics', version: '1.2.3' } },
        messageId: randomUUID(),
        timestamp: new Date(1_700_000_000_000 + index * 13).toISOString(),
      }),
    )
    const text = `{"batch":[${batch.join(',')}]}`
    const body = gzipSync(text)
    expect(body.length).toBeLessThan(2_048)
    const answer = await answers.handle('batch', body, 'Bearer FREE', client)
    expect(JSON.parse(answer.body)).toEqual({ success: true })
  })
})
