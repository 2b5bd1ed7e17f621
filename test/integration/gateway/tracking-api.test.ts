import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { partitionOf } from '../../../src/message/partitioner.ts'
import {
  basic,
  type Reply,
  startGateway,
  type TestGateway,
  type WrittenRecord,
} from '../../support/gateway.ts'
import { postChunks } from '../../support/post.ts'
import { until } from '../../support/until.ts'
import { newIds } from '../../e2e/scene.ts'

let gateway: TestGateway

beforeAll(async () => {
  gateway = await startGateway({
    sources: [
      { id: 'shop', writeKeys: ['KEY', 'OTHER-KEY'] },
      { id: 'app', writeKeys: ['APP-KEY'] },
      { id: 'off', enabled: false, writeKeys: ['OFF-KEY'] },
    ],
  })
})

afterAll(() => gateway.stop())

const success = { success: true }

function track(messageId: string, more: object = {}) {
  return { type: 'track', userId: 'u1', event: 'Order Completed', messageId, ...more }
}

/**
 * Returns the records with these ids, in this order. Throws if a record is missing or exists more than once.
 */
async function writtenOf(ids: readonly string[]): Promise<WrittenRecord[]> {
  const records = await gateway.read('events')
  return ids.map((id) => {
    const found = records.filter(({ value }) => value['messageId'] === id)
    if (found[0] === undefined || found.length > 1) throw new Error(`${id} is there ${found.length} times`)
    return found[0]
  })
}

async function isWritten(id: string): Promise<boolean> {
  const records = await gateway.read('events')
  return records.some(({ value }) => value['messageId'] === id)
}

async function leftOut(reason: string): Promise<number> {
  return gateway.process.metric('sluice_gateway_left_out_total', { reason })
}

const bodies: Record<string, object> = {
  identify: { userId: 'u1', traits: { plan: 'pro' } },
  track: { userId: 'u1', event: 'E', properties: { a: 1 } },
  page: { anonymousId: 'a1', name: 'Home', properties: { url: '/' } },
  screen: { anonymousId: 'a1', name: 'Main' },
  group: { userId: 'u1', groupId: 'g1', traits: { name: 'Acme' } },
  alias: { userId: 'u1', previousId: 'p1' },
}
const shortPaths = { i: 'identify', t: 'track', p: 'page', s: 'screen', g: 'group', a: 'alias' } as const

describe('every path', () => {
  const paths = [
    ...Object.keys(bodies).map((kind) => [`/v1/${kind}`, kind] as const),
    ...Object.entries(shortPaths).map(([path, kind]) => [`/v1/${path}`, kind] as const),
  ]

  test.each(paths)('%s takes a message without a type as %s', async (path, kind) => {
    const [messageId = ''] = newIds(1)
    const reply = await gateway.post(path, { ...bodies[kind], messageId }, basic('KEY'))
    expect([reply.status, reply.body]).toEqual([200, success])
    expect(reply.headers.get('content-type')).toMatch(/^application\/json/)
    const [record] = await writtenOf([messageId])
    expect(record?.value).toMatchObject({ ...bodies[kind], type: kind, messageId })
  })

  test.each(['/v1/batch', '/v1/import', '/v1/b'])('%s takes a batch', async (path) => {
    const ids = newIds(6)
    const batch = Object.entries(bodies).map(([type, body], index) => ({
      type,
      ...body,
      messageId: ids[index],
    }))
    const reply = await gateway.post(path, { batch }, basic('KEY'))
    expect([reply.status, reply.body]).toEqual([200, success])
    const values = (await writtenOf(ids)).map(({ value }) => value)
    expect(values).toEqual(batch.map((message) => expect.objectContaining(message)))
  })

  test.each(['//v1/batch', '/v1//batch', '/v1/batch/', '//v1//batch//', '/v1/batch?x=1', '/v1/batch/?x=1'])(
    '%s is one of them, and never a redirect',
    async (path) => {
      const [messageId = ''] = newIds(1)
      const reply = await gateway.post(path, { batch: [track(messageId)] }, basic('KEY'))
      expect([reply.status, reply.body]).toEqual([200, success])
      expect(await isWritten(messageId)).toBe(true)
    },
  )

  test('/v1/m is answered, and thrown away', async () => {
    const reply = await gateway.post('/v1/m', '{"series":[]}', { 'content-type': 'text/plain' })
    expect([reply.status, reply.body]).toEqual([200, success])
  })

  test.each(['GET', 'PUT', 'PATCH', 'DELETE', 'QUERY', 'PROPFIND'])(
    'asked for by %s is 404, with a body or without',
    async (method) => {
      for (const path of ['/v1/batch', '/v1/deletions', '/nothing']) {
        const sent = method === 'GET' ? [undefined] : [undefined, '{"batch":[]}']
        for (const body of sent) {
          const response = await fetch(gateway.origin + path, {
            method,
            headers: basic('KEY'),
            ...(body !== undefined && { body }),
          })
          expect([response.status, await response.json()]).toMatchObject([404, { code: 'not_found' }])
        }
      }
    },
  )

  test('another path is 404 with a code, and never a redirect', async () => {
    for (const path of ['/', '/v1', '/v1/tracks', '/v2/batch', '/v1/batch/x', '/%E0%A4%A']) {
      const { status, body, headers } = await gateway.post(path, {}, basic('KEY'))
      expect([path, status]).toEqual([path, 404])
      expect(body).toMatchObject({ success: false, code: 'not_found' })
      expect(headers.get('access-control-allow-origin')).toBe('*')
    }
  })
})

const base64 = (text: string) => Buffer.from(text).toString('base64')

describe('every way of sending a write key', () => {
  test.each<[string, Record<string, string>, object]>([
    ['Basic with a colon', { authorization: `Basic ${base64('KEY:')}` }, {}],
    ['Basic without a colon', { authorization: `Basic ${base64('KEY')}` }, {}],
    ['a second key of the source', { authorization: `Basic ${base64('OTHER-KEY:')}` }, {}],
    ['writeKey in the body', {}, { writeKey: 'KEY' }],
    ['both', { authorization: `Basic ${base64('KEY:')}` }, { writeKey: 'KEY' }],
    ['Bearer, and writeKey in the body', { authorization: 'Bearer eyJhbGciOi.x.y' }, { writeKey: 'KEY' }],
  ])('%s names the source', async (_, headers, inBody) => {
    const [single = '', batched = ''] = newIds(2)
    const replies = [
      await gateway.post('/v1/track', { ...track(single), ...inBody }, headers),
      await gateway.post('/v1/batch', { batch: [track(batched)], ...inBody }, headers),
    ]
    expect(replies.map(({ status }) => status)).toEqual([200, 200])
    for (const record of await writtenOf([single, batched])) {
      expect(record.headers).toEqual({ 'source-id': 'shop' })
      expect(record.text).not.toContain('KEY')
    }
  })

  test.each<[string, Record<string, string>, object]>([
    ['no key', {}, {}],
    ['an unknown key', basic('NOPE'), {}],
    ['an unknown key in the body', {}, { writeKey: 'NOPE' }],
    ['a key in other letters', basic('key'), {}],
    ['a key that is no text', {}, { writeKey: { $ne: '' } }],
    ['a name of Object', basic('__proto__'), {}],
  ])('%s is 401 with a code', async (_, headers, inBody) => {
    const [messageId = ''] = newIds(1)
    const before = await leftOut('unknown_source')
    const reply = await gateway.post('/v1/track', { ...track(messageId), ...inBody }, headers)
    expect(reply.status).toBe(401)
    expect(reply.body).toMatchObject({
      success: false,
      code: 'unknown_write_key',
      message: expect.any(String),
    })
    expect(await isWritten(messageId)).toBe(false)
    expect(await leftOut('unknown_source')).toBe(before + 1)
  })

  test('a key of another source writes for that one', async () => {
    const [messageId = ''] = newIds(1)
    await gateway.post('/v1/track', track(messageId), basic('APP-KEY'))
    const [record] = await writtenOf([messageId])
    expect(record?.headers).toEqual({ 'source-id': 'app' })
  })

  test('the key of a source that is switched off is answered 200, and its messages are left out', async () => {
    const ids = newIds(2)
    const before = await leftOut('source_disabled')
    const reply = await gateway.post('/v1/batch', { batch: ids.map((id) => track(id)) }, basic('OFF-KEY'))
    const rejected = ids.map((messageId, index) => ({ index, messageId, reason: 'source_disabled' }))
    expect([reply.status, reply.body]).toEqual([200, { success: true, rejected, rejectedCount: 2 }])
    expect(await isWritten(ids[0] ?? '')).toBe(false)
    expect(await leftOut('source_disabled')).toBe(before + 2)
  })
})

describe('JSON is read', () => {
  const types = [
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'text/plain',
    'text/plain;charset=UTF-8',
    'application/x-www-form-urlencoded',
    'application/x-www-form-urlencoded; charset=UTF-8',
    'application/octet-stream',
    'multipart/form-data',
    'json',
    '',
  ]

  test.each(types)('under the type "%s", plain and in gzip', async (type) => {
    const [plain = '', zipped = '', told = ''] = newIds(3)
    const headers = { ...basic('KEY'), 'content-type': type }
    const replies = [
      await gateway.post('/v1/track', JSON.stringify(track(plain)), headers),
      await gateway.post('/v1/track', gzipSync(JSON.stringify(track(zipped))), headers),
      await gateway.post('/v1/track', gzipSync(JSON.stringify(track(told))), {
        ...headers,
        'content-encoding': 'gzip',
      }),
    ]
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200])
    await writtenOf([plain, zipped, told])
  })

  test('that is plain though the head says gzip, as proxies leave it', async () => {
    const [messageId = ''] = newIds(1)
    const headers = { ...basic('KEY'), 'content-encoding': 'gzip' }
    expect((await gateway.post('/v1/track', track(messageId), headers)).status).toBe(200)
    await writtenOf([messageId])
  })

  test('in chunks of any size, without a length', async () => {
    const [messageId = ''] = newIds(1)
    const status = await postChunks(
      `${gateway.origin}/v1/track`,
      Array.from(Buffer.from(JSON.stringify(track(messageId, { note: 'é漢😀' }))), (byte) => Buffer.of(byte)),
      basic('KEY'),
    )
    expect(status).toBe(200)
    const [record] = await writtenOf([messageId])
    expect(record?.value['note']).toBe('é漢😀')
  })

  test('with keys called __proto__, which come through and pollute nothing', async () => {
    const [messageId = '', next = ''] = newIds(2)
    const text = JSON.stringify(track(messageId)).replace('{', '{"__proto__":{"event":"x","polluted":1},')
    expect((await gateway.post('/v1/track', text, basic('KEY'))).status).toBe(200)
    await gateway.post('/v1/track', { userId: 'u1', event: 'E', messageId: next }, basic('KEY'))
    const [one, other] = await writtenOf([messageId, next])
    expect(one?.text).toContain('{"__proto__":{"event":"x","polluted":1},"type":"track"')
    expect(one?.value['event']).toBe('Order Completed')
    expect(other?.text).not.toContain('polluted')
  })

  test.each([
    ['nothing', ''],
    ['what is cut off', '{"userId":"u1","event":"E"'],
    ['what Python writes', '{"userId":"u1","event":"E","properties":{"a":NaN}}'],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['gzip that is cut off', gzipSync('{"userId":"u1","event":"E"}').subarray(0, 20)],
    ['text', 'data=eyJ1c2VySWQi'],
  ])('not of %s: 400 with a code', async (_, body) => {
    const reply = await gateway.post('/v1/track', body, basic('KEY'))
    expect(reply.status).toBe(400)
    expect(reply.body).toMatchObject({ success: false, code: 'malformed_json', message: expect.any(String) })
  })

  test.each(['[]', 'null', '7', '"text"'])('not of %s, which is no object: 400', async (body) => {
    const reply = await gateway.post('/v1/batch', body, basic('KEY'))
    expect([reply.status, reply.body['code']]).toEqual([400, 'invalid_body'])
  })

  test.each([{ batch: 'x' }, { batch: {} }, { batch: [], context: 'x' }, { batch: [], integrations: [1] }])(
    'not of a batch with a field of the wrong type: 400',
    async (body) => {
      const reply = await gateway.post('/v1/batch', body, basic('KEY'))
      expect([reply.status, reply.body['code']]).toEqual([400, 'invalid_body'])
    },
  )
})

function hasId(item: unknown): item is { messageId: string } {
  return typeof item === 'object' && item !== null && 'messageId' in item
}

/** Returns a body of exactly `bytes` bytes. */
function sized(bytes: number, wrap: (pad: string) => object): string {
  const empty = JSON.stringify(wrap('')).length
  return JSON.stringify(wrap('x'.repeat(bytes - empty)))
}

describe('limits', () => {
  test.each([
    ['plain', (text: string) => text],
    ['in gzip', (text: string) => gzipSync(text)],
  ])('a message of 32,768 bytes is taken, %s, and one of 32,769 is 400', async (_, encode) => {
    const [fits = '', over = ''] = newIds(2)
    const one = await gateway.post(
      '/v1/track',
      encode(sized(32_768, (pad) => track(fits, { pad }))),
      basic('KEY'),
    )
    const other = await gateway.post(
      '/v1/track',
      encode(sized(32_769, (pad) => track(over, { pad }))),
      basic('KEY'),
    )
    expect([one.status, other.status, other.body['code']]).toEqual([200, 400, 'payload_too_large'])
    expect([await isWritten(fits), await isWritten(over)]).toEqual([true, false])
  })

  test.each([
    ['plain', (text: string) => text],
    ['in gzip', (text: string) => gzipSync(text)],
  ])('a batch of 512,000 bytes is taken, %s, and one of 512,001 is 400', async (_, encode) => {
    const sizes = [512_000, 512_001]
    const replies: Reply[] = []
    const ids = newIds(2)
    for (const [index, size] of sizes.entries()) {
      // In gzip, the body is a hundred times shorter. If it were a thousand times shorter, it would be too dense.
      const filler = Array.from({ length: 15 }, () => ({
        ...track(''),
        pad: randomBytes(150).toString('hex').repeat(100),
      }))
      const body = sized(size, (pad) => ({ batch: [track(ids[index] ?? ''), ...filler], pad }))
      replies.push(await gateway.post('/v1/batch', encode(body), basic('KEY')))
    }
    expect(replies.map(({ status }) => status)).toEqual([200, 400])
    expect(replies[1]?.body['code']).toBe('payload_too_large')
    expect(await isWritten(ids[0] ?? '')).toBe(true)
  })

  test('a batch as analytics-go v3 fills it, of 500,008 bytes, is taken', async () => {
    const filler = Array.from({ length: 20 }, () => ({ ...track(''), pad: 'x'.repeat(20_000) }))
    const body = sized(500_008, (pad) => ({ batch: filler, pad }))
    expect((await gateway.post('/v1/batch', body, basic('KEY'))).status).toBe(200)
  })

  test('2,500 messages are taken, and 2,501 are 400', async () => {
    const ids = newIds(2_501)
    const some = await gateway.post(
      '/v1/batch',
      { batch: ids.slice(0, 2_500).map((id) => track(id, { userId: id })) },
      basic('KEY'),
    )
    const more = await gateway.post(
      '/v1/batch',
      { batch: ids.map((id) => track(id, { userId: id })) },
      basic('KEY'),
    )
    expect([some.status, more.status, more.body['code']]).toEqual([200, 400, 'too_many_messages'])
    const found = new Set((await gateway.read('events')).map(({ value }) => value['messageId']))
    expect(ids.filter((id) => found.has(id))).toHaveLength(2_500)
  })

  test('a message over 32 KB in a batch is left out, and its neighbours are taken', async () => {
    const [first = '', large = '', last = ''] = newIds(3)
    const before = await leftOut('message_too_large')
    const batch = [track(first), track(large, { pad: 'x'.repeat(33_000) }), track(last)]
    expect((await gateway.post('/v1/batch', { batch }, basic('KEY'))).status).toBe(200)
    await writtenOf([first, last])
    expect(await isWritten(large)).toBe(false)
    expect(await leftOut('message_too_large')).toBe(before + 1)
  })

  test('users’ ids as long as messages are taken, of several requests at once', async () => {
    const userId = 'u'.repeat(14_000)
    const ids = newIds(120)
    const requests = Array.from({ length: 8 }, (_, request) => {
      const batch = ids.slice(request * 15, (request + 1) * 15).map((id) => track(id, { userId }))
      return gateway.post('/v1/batch', { batch }, basic('KEY'))
    })
    expect((await Promise.all(requests)).map(({ status }) => status)).toEqual(Array(8).fill(200))
    await writtenOf(ids)
  })

  test('what a batch says for all may not blow it up', async () => {
    const batch = Array.from({ length: 1_000 }, () => track(''))
    const reply = await gateway.post(
      '/v1/batch',
      { batch, context: { pad: 'x'.repeat(30_000) } },
      basic('KEY'),
    )
    expect([reply.status, reply.body['code']]).toEqual([400, 'payload_too_large'])
  })
})

describe('a message that is not valid is left out, its neighbours are taken, and it is counted', () => {
  test.each<[string, unknown]>([
    ['no_user_anon_id', { type: 'track', event: 'E' }],
    ['id_not_string', { type: 'track', userId: 7, event: 'E' }],
    ['event_not_defined', { type: 'track', userId: 'u1' }],
    ['event_not_string', { type: 'track', userId: 'u1', event: 7 }],
    ['properties_not_object', { type: 'track', userId: 'u1', event: 'E', properties: 'x' }],
    ['traits_not_object', { type: 'identify', userId: 'u1', traits: [1] }],
    ['unknown_type', { type: 'nothing', userId: 'u1' }],
    ['unknown_type', { type: 'delete', userId: 'u1' }],
    ['not_an_object', 'text'],
    ['group_id_not_defined', { type: 'group', userId: 'u1' }],
    ['no_previous_id', { type: 'alias', userId: 'u1' }],
    ['message_id_too_long', { ...track('x'.repeat(101)) }],
    ['bad_timestamp', track('with-no-time', { timestamp: 'yesterday' })],
    ['bad_timestamp', track('with-a-number', { timestamp: Date.now() })],
    [
      'nested_too_deep',
      JSON.parse(`{"type":"track","userId":"u1","event":"E","a":${'['.repeat(200)}${']'.repeat(200)}}`),
    ],
  ])('%s', async (reason, bad) => {
    const [first = '', last = ''] = newIds(2)
    const before = await leftOut(reason)
    const reply = await gateway.post('/v1/batch', { batch: [track(first), bad, track(last)] }, basic('KEY'))
    const named = reason === 'message_id_too_long' || !hasId(bad) ? {} : { messageId: bad.messageId }
    const rejected = [{ index: 1, ...named, reason }]
    expect([reply.status, reply.body]).toEqual([200, { success: true, rejected, rejectedCount: 1 }])
    await writtenOf([first, last])
    expect(await leftOut(reason)).toBe(before + 1)
  })

  test.each(['NaN', 'Infinity', '-Infinity'])('not_json, of a message with %s', async (word) => {
    const [first = '', bad = '', last = ''] = newIds(3)
    const before = await leftOut('not_json')
    const items = [track(first), track(bad, { properties: { total: 0.125 } }), track(last)]
    const text = JSON.stringify({ batch: items, sentAt: new Date().toISOString() }).replace('0.125', word)
    const reply = await gateway.post('/v1/batch', text, basic('KEY'))
    const rejected = [{ index: 1, messageId: bad, reason: 'not_json' }]
    expect([reply.status, reply.body]).toEqual([200, { success: true, rejected, rejectedCount: 1 }])
    await writtenOf([first, last])
    expect([await isWritten(bad), await leftOut('not_json')]).toEqual([false, before + 1])
  })

  test('number_out_of_range, which would silently become null', async () => {
    const [messageId = ''] = newIds(1)
    const before = await leftOut('number_out_of_range')
    const text = `{"batch":[${JSON.stringify(track(messageId))},{"type":"track","userId":"u","event":"E","n":1e999}]}`
    expect((await gateway.post('/v1/batch', text, basic('KEY'))).status).toBe(200)
    await writtenOf([messageId])
    expect(await leftOut('number_out_of_range')).toBe(before + 1)
  })

  test('or answered 400 where it comes alone and can not be written at all', async () => {
    for (const a of ['1e999', '['.repeat(200) + ']'.repeat(200)]) {
      const reply = await gateway.post('/v1/track', `{"userId":"u1","event":"E","a":${a}}`, basic('KEY'))
      expect([reply.status, reply.body['code']]).toEqual([400, 'invalid_body'])
    }
  })

  test.each([{ batch: [] }, { batch: null }, {}])('empty_batch', async (body) => {
    const before = await leftOut('empty_batch')
    const reply = await gateway.post('/v1/batch', body, basic('KEY'))
    expect([reply.status, reply.body]).toEqual([200, success])
    expect(await leftOut('empty_batch')).toBe(before + 1)
  })

  test('a single one too', async () => {
    const before = await leftOut('event_not_defined')
    const reply = await gateway.post('/v1/track', { userId: 'u1' }, basic('KEY'))
    const rejected = [{ index: 0, reason: 'event_not_defined' }]
    const message = 'Set event to the name of the event: a track message needs it.'
    expect([reply.status, reply.body]).toEqual([200, { success: false, message, rejected, rejectedCount: 1 }])
    expect(await leftOut('event_not_defined')).toBe(before + 1)
  })

  test('and the log says so once, with no content', async () => {
    const lines = gateway.process.log.filter(
      ({ msg, reason }) => msg === 'messages were left out' && reason === 'id_not_string',
    )
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatchObject({ source: 'shop', messages: 1 })
  })
})

describe('what is written', () => {
  test('has a messageId, receivedAt and a corrected timestamp', async () => {
    const [messageId = ''] = newIds(1)
    const clockMs = Date.now() - 3_600_000
    const original = new Date(clockMs - 60_000).toISOString().replace('Z', '+0000')
    const body = {
      sentAt: new Date(clockMs).toISOString(),
      batch: [track(messageId, { timestamp: original }), { type: 'page', userId: 'of-page-without-id' }],
    }
    const startMs = Date.now()
    await gateway.post('/v1/batch', body, basic('KEY'))
    const endMs = Date.now()
    const [record] = await writtenOf([messageId])
    const value = record?.value ?? {}
    const receivedMs = Date.parse(String(value['receivedAt']))
    expect(receivedMs).toBeGreaterThanOrEqual(startMs)
    expect(receivedMs).toBeLessThanOrEqual(endMs)
    expect(Date.parse(String(value['timestamp']))).toBe(receivedMs - 60_000)
    expect(value).toMatchObject({ originalTimestamp: original, sentAt: body.sentAt })
    const page = (await gateway.read('events')).find((one) => one.value['userId'] === 'of-page-without-id')
    expect(page?.value['messageId']).toMatch(/^[0-9a-f-]{36}$/)
  })

  test('keeps the time of a message whose batch was sent decades ago', async () => {
    const [messageId = ''] = newIds(1)
    const timestamp = new Date(Date.now() - 60_000).toISOString()
    const batch = [track(messageId, { timestamp })]
    await gateway.post('/v1/batch', { sentAt: '1970-01-01T00:00:00.000Z', batch }, basic('KEY'))
    const [record] = await writtenOf([messageId])
    expect(record?.value).toMatchObject({ timestamp, originalTimestamp: timestamp })
  })

  test('loses digits of whole numbers beyond 2^53, which are counted', async () => {
    const before = await gateway.process.metric('sluice_gateway_lost_digits_total')
    const text =
      '{"userId":"u1","event":"E","properties":{"order":9007199254740993,"text":"9007199254740993"}}'
    expect((await gateway.post('/v1/track', text, basic('KEY'))).status).toBe(200)
    expect(await gateway.process.metric('sluice_gateway_lost_digits_total')).toBe(before + 1)
    const line = await until('the log says so', () =>
      gateway.process.log.find(({ msg }) => msg.startsWith('numbers beyond 2^53 lost digits')),
    )
    expect(line).toMatchObject({ source: 'shop', numbers: 1 })
  })

  test('has the context and integrations of its batch', async () => {
    const [plain = '', own = ''] = newIds(2)
    const body = {
      context: { library: { name: 'analytics-go', version: '3.0.0' }, ip: '203.0.113.1' },
      integrations: { All: true, Webhooks: false },
      batch: [track(plain), track(own, { context: { ip: '203.0.113.2' }, integrations: { Webhooks: true } })],
    }
    await gateway.post('/v1/batch', body, basic('KEY'))
    const [one, other] = await writtenOf([plain, own])
    expect(one?.value).toMatchObject({ context: body.context, integrations: body.integrations })
    expect(other?.value).toMatchObject({
      context: { library: body.context.library, ip: '203.0.113.2' },
      integrations: { All: true, Webhooks: true },
    })
  })

  test('is keyed by user, and in the partition where Java’s clients would put it', async () => {
    const ids = newIds(40)
    const batch = ids.map((messageId, index) => ({
      type: 'page',
      messageId,
      ...(index % 2 === 0 ? { userId: `user-é-${messageId}` } : { anonymousId: `anon-${messageId}` }),
    }))
    await gateway.post('/v1/batch', { batch }, basic('KEY'))
    const records = await writtenOf(ids)
    expect(new Set(records.map(({ partition }) => partition)).size).toBe(3)
    for (const [index, { key, partition }] of records.entries()) {
      expect(key).toBe(index % 2 === 0 ? `user-é-${ids[index]}` : `anon-${ids[index]}`)
      expect(partition).toBe(partitionOf(key ?? '', 3))
    }
  })

  test('keeps the order of a user', async () => {
    const ids = newIds(2_000)
    await gateway.post(
      '/v1/batch',
      { batch: ids.map((id) => track(id, { userId: 'ordered' })) },
      basic('KEY'),
    )
    const records = await gateway.read('events')
    const written = records.filter(({ key }) => key === 'ordered').map(({ value }) => value['messageId'])
    expect(written).toEqual(ids)
  })
})

describe('the document about the API', () => {
  test('is served, and so is a page that shows it', async () => {
    const api = await fetch(`${gateway.origin}/openapi.json`)
    expect(api.headers.get('content-type')).toMatch(/json/)
    expect(await api.json()).toMatchObject({ openapi: '3.1.0' })
    for (const path of ['/docs', '/docs/']) {
      const page = await fetch(gateway.origin + path)
      expect(page.headers.get('content-type')).toMatch(/html/)
      const link = /fetch\('([^']+)'\)/.exec(await page.text())?.[1] ?? ''
      expect(await (await fetch(new URL(link, page.url))).json()).toMatchObject({ openapi: '3.1.0' })
    }
  })
})
