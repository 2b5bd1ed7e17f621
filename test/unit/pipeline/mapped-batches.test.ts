import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Batch } from '../../../src/catalog/features/batch.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import type { Mapping } from '../../../src/shape/definition.ts'
import { until } from '../../support/until.ts'
import {
  type Destination,
  destinationOf,
  failed,
  stage,
  type Stage,
  type StageOptions,
  taken,
  TestRecord,
} from './stage.ts'

// Mappings in batches, and through logins: what may share a request, and that its bytes stay the same.

const batch: Batch = { maxMessages: 4, maxBytes: 100_000, maxWaitMs: 1_000_000, format: 'json' }
const orders: Mapping = {
  condition: 'event.startsWith("Order")',
  body: { order: { '@path': '$.messageId' } },
}
const others: Mapping = { body: { other: { '@path': '$.messageId' } } }

function open(settings: Partial<Destination> = {}, options: StageOptions = {}): Stage {
  const crm = destinationOf('crm', {
    sources: ['shop'],
    sharedSecret: 's3cret',
    batch,
    mappings: [orders, others],
    ...settings,
  })
  return stage({ sources: { shop: {} }, destinations: [crm], ...options })
}

let offset = 0

/** Sends messages whose ids begin with the names of their events: `Order-1` is an `Order`. */
function send(at: Stage, ...ids: string[]): TestRecord[] {
  return ids.map((messageId) => {
    const record = new TestRecord('events', offset++)
    const event = messageId.split('-')[0]
    const value = Buffer.from(
      JSON.stringify({ type: 'track', event, userId: 'u', messageId, properties: { total: 5 } }),
    )
    at.pipeline.accept(record, { key: Buffer.from('u'), value, headers: { 'source-id': 'shop' } })
    return record
  })
}

function signatureOf(body: string): string {
  return createHmac('sha1', 's3cret').update(body).digest('hex')
}

describe('in a batch', () => {
  test('each message has the body of its own mapping, and the signature is of all of them', async () => {
    const at = open()
    const records = send(at, 'Order-1', 'Seen-1', 'Order-2', 'Seen-2')
    const body = '[{"order":"Order-1"},{"other":"Seen-1"},{"order":"Order-2"},{"other":"Seen-2"}]'
    expect(at.posted).toMatchObject([{ body, own: undefined, headers: ['X-Signature', signatureOf(body)] }])
    await at.answer(taken)
    expect(records.map(({ settled }) => settled)).toEqual([1, 1, 1, 1])
  })

  test('of lines, each has the line of its own mapping', () => {
    const at = open({ batch: { ...batch, format: 'ndjson' } })
    send(at, 'Order-1', 'Seen-1', 'Order-2', 'Seen-2')
    expect(at.bodies()).toEqual([
      '{"order":"Order-1"}\n{"other":"Seen-1"}\n{"order":"Order-2"}\n{"other":"Seen-2"}\n',
    ])
  })

  test.each<[string, Mapping, string]>([
    ['a path', { path: '/people/{{userId}}' }, 'application/json'],
    ['a method', { method: 'PUT' }, 'application/json'],
    ['a header', { headers: { 'X-Event': { '@path': '$.event' } } }, 'application/json'],
    ['a form', { format: 'form' }, 'application/x-www-form-urlencoded'],
  ])('a message with %s of its own has no place, and is sent alone', async (_, more, type) => {
    const own: Mapping = { condition: 'event == "Own"', body: { id: { '@path': '$.messageId' } }, ...more }
    const at = open({ mappings: [own, others], batch: { ...batch, maxWaitMs: 20, format: 'ndjson' } })
    send(at, 'Seen-1', 'Seen-2', 'Own-1', 'Seen-3')
    await until('all are sent', () => at.posted.length === 3)
    const [first, alone] = at.posted
    expect(first).toMatchObject({ body: '{"other":"Seen-1"}\n{"other":"Seen-2"}\n', own: undefined })
    expect(alone?.body).toBe(more.format === 'form' ? 'id=Own-1' : '{"id":"Own-1"}')
    expect(alone?.own?.headers).toEqual(expect.arrayContaining(['Content-Type', type]))
    expect(alone?.headers).toEqual(['X-Signature', signatureOf(alone?.body ?? '')])
  })

  test('a header that a message does not have keeps it in the batch', () => {
    const own: Mapping = { headers: { 'X-Plan': { '@path': '$.properties.plan' } } }
    const at = open({ mappings: [own] })
    send(at, 'Seen-1', 'Seen-2', 'Seen-3', 'Seen-4')
    expect(at.posted).toHaveLength(1)
  })

  test('messages of which their mapping makes nothing become dead letters, and cut no batch in two', async () => {
    const made: Mapping = { body: { '@path': '$.event' } }
    const nothing: Mapping = { condition: 'event == "Nothing"', body: { '@path': '$.no' } }
    const at = open({ mappings: [nothing, made] })
    const records = send(at, 'A-1', 'Nothing-1', 'Nothing-2', 'B-1')
    expect(at.bodies()).toEqual(['["A","B"]'])
    expect(at.told).toEqual(['dead crm: mapping_failed', 'dead crm: mapping_failed'])
    await at.answer(taken)
    expect(records.map(({ settled }) => settled)).toEqual([1, 1, 1, 1])
    expect(at.pipeline.held).toEqual({ records: 0, bytes: 0 })
    expect({ inFlight: at.pipeline.inFlight, queued: at.pipeline.queued }).toEqual({ inFlight: 0, queued: 0 })
  })

  test('messages that no mapping is for by now are left out, and cut no batch in two', async () => {
    const before = open({ state: 'paused' })
    send(before, 'Order-1', 'Seen-1', 'Order-2', 'Order-3')
    await before.settle()
    const after = open({ mappings: [orders] })
    for (const record of before.written) after.retry(record)
    await after.settle()
    expect(after.bodies()).toEqual(['[{"order":"Order-1"},{"order":"Order-2"},{"order":"Order-3"}]'])
    expect(after.told).toEqual(['not routed: filtered_by_destination'])
  })

  test('messages whose conditions were not asked yet share a batch, if these let them through', async () => {
    const before = open({ state: 'paused' })
    send(before, 'Order-1', 'Seen-1', 'Order-2', 'Order-3')
    await before.settle()
    const filter = { types: undefined, events: undefined, condition: 'event == "Order"' }
    const after = open({ filter })
    for (const record of before.written)
      after.retry({ ...record, headers: { ...record.headers, unjudged: '1' } })
    await after.settle()
    expect(after.bodies()).toEqual(['[{"order":"Order-1"},{"order":"Order-2"},{"order":"Order-3"}]'])
    expect(after.told).toEqual(['not routed: filtered_by_destination'])
  })

  test('a retry has the bytes of the first try, beside new messages with another mapping', async () => {
    const before = open()
    send(before, 'Order-1', 'Order-2', 'Seen-1', 'Seen-2')
    await before.answer(failed)
    const after = open({ mappings: [{ body: { anew: { '@path': '$.messageId' } } }] })
    for (const record of before.written.slice(0, 3)) after.retry(record)
    send(after, 'Order-3')
    await after.settle()
    const [body = ''] = after.bodies()
    const sent: unknown = JSON.parse(body)
    expect(sent).toHaveLength(4)
    for (const one of [
      '{"order":"Order-1"}',
      '{"order":"Order-2"}',
      '{"other":"Seen-1"}',
      '{"anew":"Order-3"}',
    ])
      expect(body).toContain(one)
    await after.answer(failed)
    const mappings = new Map(
      [...before.written, ...after.written].map(({ headers }) => [headers['message-id'], headers['mapping']]),
    )
    expect(mappings.get('Order-1')).toBe('{"body":{"order":{"@path":"$.messageId"}}}')
    expect(mappings.get('Order-3')).toBe('{"body":{"anew":{"@path":"$.messageId"}}}')
  })
})

test('what a mapping makes of a message counts in the buffer until its request has ended', async () => {
  const large = 'x'.repeat(4_000)
  for (const sentTogether of [batch, undefined]) {
    const at = open({ batch: sentTogether, mappings: [{ body: { large } }] })
    const records = send(at, 'A-1', 'A-2', 'A-3', 'A-4')
    expect(at.pipeline.held.bytes).toBeGreaterThan(4 * large.length)
    while (at.posted.length > 0) await at.answer(taken)
    expect(records.map(({ settled }) => settled)).toEqual([1, 1, 1, 1])
    expect(at.pipeline.held).toEqual({ records: 0, bytes: 0 })
  }
})

function given(token: string): Outcome {
  const body = Buffer.from(JSON.stringify({ access_token: token, expires_in: 600 }))
  return { kind: 'answer', status: 200, body }
}

describe('through a login', () => {
  const login = {
    kind: 'oauth2',
    tokenOrigin: 'https://login.example',
    tokenPath: '/token',
    clientId: 'sluice',
    clientSecret: 'secret',
    clientAuth: 'basic',
  } as const
  const hooks = [{ id: 'hook', origin: 'https://crm.example', path: '/', headers: [], login }]
  const unauthorized: Outcome = { kind: 'answer', status: 401 }

  test.each<[string, Partial<Destination>, number]>([
    ['alone', { batch: undefined, mappings: [{ ...orders, method: 'PUT', path: '/orders' }] }, 1],
    ['in a batch', {}, 4],
  ])(
    'a request that a mapping has made (%s) is made once more after a 401, with the same bytes and signature',
    async (_, settings, count) => {
      const at = open({ hooks, ...settings })
      const request = (host: string) =>
        until(`a request to ${host}`, () => at.posted.find(({ to }) => to === host))
      send(at, ...['Order-1', 'Order-2', 'Order-3', 'Order-4'].slice(0, count))
      ;(await request('login')).answer(given('one'))
      const first = await request('crm')
      first.answer(unauthorized)
      ;(await request('login')).answer(given('two'))
      const again = await request('crm')
      expect(again.body).toBe(first.body)
      expect(again.own).toEqual(first.own)
      const signature = ['X-Signature', signatureOf(first.body)]
      expect(first.headers).toEqual([...signature, 'Authorization', 'Bearer one'])
      expect(again.headers).toEqual([...signature, 'Authorization', 'Bearer two'])
      again.answer(taken)
      await until('all are delivered', () => at.told.length === count)
      expect(at.told.every((line) => line.startsWith('delivered'))).toBe(true)
      expect(at.pipeline.held).toEqual({ records: 0, bytes: 0 })
    },
  )
})
