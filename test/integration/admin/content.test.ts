import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAdminClient } from '../../../clients/admin/client.js'
import { logKinds } from '../../../src/delivery-log/log-record.ts'
import { blockOf, stateOf } from '../../support/log-blocks.ts'
import { produce } from '../../support/kafka.ts'
import { openTenants, type Tenants } from '../../support/two-tenants.ts'
import { until } from '../../support/until.ts'

let tenants: Tenants
let acme: { withContent: string; without: string }

const written =
  '{"type":"track","userId":"u1","event":"Bought","properties":{"total":30},"messageId":"bought-1"}'

beforeAll(async () => {
  tenants = await openTenants()
  const { prefix } = tenants.scene
  await produce(`${prefix}events`, [
    event('acme-shop', written),
    event('globex-shop', '{"type":"track","userId":"u2","event":"Secret of globex","messageId":"other"}'),
    event('acme-shop', '{"type":"track","event":"Nobody","messageId":"refused-1"}'),
  ])
  const at = (originOffset: number, messageId: string) => ({
    destination: 'acme.crm',
    source: 'acme-shop',
    messageId,
    originTopic: `${prefix}events`,
    originOffset,
  })
  const states = [
    stateOf({
      ...at(0, 'bought-1'),
      verdict: 2,
      status: 503,
      answer: Buffer.from('u1 is unknown'),
    }),
    // The log says that the message came from this place, but another record is there now.
    stateOf(at(1, 'replaced-1')),
    stateOf(at(2, 'refused-1')),
    stateOf(at(99, 'gone-1')),
    ...[
      ['acme.crm', 'expired', 5],
      ['acme.crm', 'expired', 3],
      ['acme.crm', 'failed_for_good', 4],
      ['globex.crm', 'expired', 2],
    ].map(([destination, reason, minutesAgo]) =>
      dead(String(destination), String(reason), Number(minutesAgo)),
    ),
    stateOf({ ...at(0, 'traits-1'), originTopic: `${prefix}audience-changes` }),
  ]
  await produce(`${prefix}attempts`, [{ key: '0', value: blockOf(states), partition: 0 }])
  await until(
    'the log has them',
    async () => (await tenants.call('GET', '/v1/log/messages/traits-1')).status === 200,
  )
  const scope = { label: 'tenant=acme' }
  const token = (name: string, order: object) => tenants.token({ name, right: 'read', scope, ...order })
  acme = { withContent: await token('sees', { content: true }), without: await token('sees-not', {}) }
})

afterAll(() => tenants?.close())

function event(source: string, value: string) {
  return { key: 'u1', value, headers: { 'source-id': source }, partition: 0 }
}

async function noteOf(message: string) {
  return (await contentOf(message)).events[0]
}

const idsOf = ({ events }: { events: readonly { messageId: string }[] }) =>
  events.map(({ messageId }) => messageId)

async function summary(body: object, token = tenants.tokens.read) {
  return (await clientOf(token).post('/v1/dead-letters/summary', { body })).data
}

const nowMs = Date.now()
const minutesBefore = (minutes: number): number => nowMs - minutes * 60_000

function dead(destination: string, reason: string, minutesAgo: number) {
  const none = { hook: '', verdict: 0, outcome: 0, status: 0, durationMs: 0 }
  const atMs = minutesBefore(minutesAgo)
  return stateOf({ ...none, kind: logKinds.indexOf('dead'), destination, reason, atMs, source: 'shop' })
}

const clientOf = (token = tenants.tokens.admin) =>
  createAdminClient({ baseUrl: `http://127.0.0.1:${tenants.admin.adminPort}`, token })

const contentOf = async (message: string, token = acme.withContent) =>
  (await clientOf(token).get('/v1/log/messages/{message}/content', { path: { message } })).data

test('the body of a message is shown byte for byte as it is sent, with the headers but without what may be a secret', async () => {
  const { events, requests } = await contentOf('bought-1')
  expect(events).toMatchObject([{ source: 'acme-shop', note: null, origin: { partition: 0, offset: 0 } }])
  const body = events[0]?.body ?? ''
  expect(JSON.parse(body)).toMatchObject({ ...JSON.parse(written), version: 1, context: {} })
  expect(body).toBe(JSON.stringify(JSON.parse(body)))
  expect(requests).toMatchObject([{ destination: 'acme.crm', hook: 'main', method: 'POST' }])
  const headers = Object.fromEntries((requests[0]?.headers ?? []).map(({ name, value }) => [name, value]))
  expect(headers).toMatchObject({ 'Content-Type': 'application/json', 'X-Sluice-Message-Id': 'bought-1' })
})

test('a link with the right answers shows what the endpoint has answered, and nothing of the message', async () => {
  const { call, admin } = tenants
  const origin = `http://127.0.0.1:${admin.adminPort}`
  const make = (rights: readonly string[], token = tenants.tokens.admin) =>
    call('POST', '/v1/links', { token, body: { name: 'acme', label: 'tenant=acme', rights } })
  const opened = async (rights: readonly string[]) => {
    const link = String((await make(rights)).json['link']).split('#link=')[1]
    const { headers } = await call('POST', '/v1/session', { token: '', headers: { origin }, body: { link } })
    return { token: '', headers: { origin, cookie: headers.get('set-cookie')?.split(';')[0] ?? '' } }
  }
  const [withAnswers, without] = [await opened(['answers']), await opened(['see'])]
  const answerFor = async (asked: typeof without) => {
    const found = await call('POST', '/v1/log/search', { ...asked, body: { messageId: 'bought-1' } })
    return Object(found.json['records'])[0]?.answer
  }
  expect([await answerFor(withAnswers), await answerFor(without)]).toEqual(['u1 is unknown', null])
  const path = '/v1/log/messages/bought-1'
  expect((await call('GET', path, withAnswers)).text).toContain('u1 is unknown')
  expect((await call('GET', `${path}/content`, withAnswers)).status).toBe(403)
  expect((await call('GET', '/v1/session', withAnswers)).json).toMatchObject({
    rights: ['see', 'answers'],
    content: false,
    catalog: 'topic',
  })
  // Nobody gives what they don't see.
  const order = { name: 'acme-blind', right: 'operate', scope: { label: 'tenant=acme' }, content: false }
  const blind = await tenants.token(order)
  expect([(await make(['answers'], blind)).status, (await make(['see'], blind)).status]).toEqual([403, 201])
})

test('what is not there, was refused, or is another message now, is said, and nothing of another is shown', async () => {
  const replaced = await noteOf('replaced-1')
  expect(replaced).toMatchObject({ body: null, note: expect.stringContaining('another message') })
  expect(JSON.stringify(replaced)).not.toContain('globex')
  expect(await noteOf('refused-1')).toMatchObject({
    body: expect.stringContaining('Nobody'),
    note: expect.stringContaining('It was refused: '),
  })
  expect(await noteOf('gone-1')).toMatchObject({ body: null, note: 'Kafka no longer has it' })
  expect(await noteOf('traits-1')).toMatchObject({
    body: null,
    note: expect.stringContaining('audience-changes'),
  })
})

test('a token that does not see content gets neither bodies nor events nor answers, and all else as before', async () => {
  for (const path of ['/v1/log/messages/bought-1/content', '/v1/sources/acme-shop/events']) {
    const { status, json } = await tenants.call('GET', path, { token: acme.without })
    expect([status, json['detail']]).toEqual([403, expect.stringContaining('was made with content')])
  }
  const answerSeenBy = async (token: string) => {
    const { data } = await clientOf(token).get('/v1/log/messages/{message}', {
      path: { message: 'bought-1' },
    })
    return data.deliveries[0]?.records[0]?.answer
  }
  expect(await answerSeenBy(acme.withContent)).toBe('u1 is unknown')
  expect(await answerSeenBy(acme.without)).toBeNull()
  expect((await clientOf(acme.without).get('/v1/health')).data.token.content).toBe(false)
})

test('who makes a token gives it no content that the own does not see, and the other rights have it by default', async () => {
  const blind = await tenants.token({ name: 'blind', right: 'admin', scope: 'all', content: false })
  const made = async (order: object) =>
    tenants.call('POST', '/v1/tokens', { token: blind, body: { scope: 'all', right: 'operate', ...order } })
  expect(await made({ name: 'b1' })).toMatchObject({ status: 201, json: { content: false } })
  expect(await made({ name: 'b2', content: true })).toMatchObject({ status: 403 })
  const { json } = await tenants.call('POST', '/v1/tokens', {
    body: { name: 'b3', scope: 'all', right: 'operate' },
  })
  expect(json['content']).toBe(true)
})

test('the last events of a source come newest first, within its scope, and who looked is in the audit trail', async () => {
  const client = clientOf(acme.withContent)
  const path = { source: 'acme-shop' }
  const { data } = await client.get('/v1/sources/{source}/events', { path })
  expect(data.events.map(({ origin, body }) => [origin.offset, body?.includes('globex')])).toEqual([
    [2, false],
    [0, false],
  ])
  expect(data).toMatchObject({ isAll: true, lookedAt: 3 })
  const one = await client.get('/v1/sources/{source}/events', { path, query: { limit: 1 } })
  expect(one.data).toMatchObject({ events: [{ origin: { offset: 2 } }], isAll: false })
  await expect(
    client.get('/v1/sources/{source}/events', { path: { source: 'globex-shop' } }),
  ).rejects.toMatchObject({ type: '/problems/not-found' })
  const audit = await clientOf().get('/v1/audit', { query: { limit: 1_000 } })
  const seen = audit.data.entries.filter(({ action }) => action === 'content_read')
  expect(seen).toContainEqual(
    expect.objectContaining({ by: 'sees', detail: 'the last events of source acme-shop' }),
  )
  expect(seen).toContainEqual(
    expect.objectContaining({ by: 'sees', destination: 'acme.crm', detail: 'message bought-1' }),
  )
})

test('events are found by what they say, part by part, within the scope, and who looked is in the audit trail', async () => {
  const search = async (body: object, token = acme.withContent) =>
    (await clientOf(token).post('/v1/events/search', { body: { conditions: ['type=track'], ...body } })).data
  const found = await search({ conditions: ['properties.total=30', 'userId=u1'] })
  expect(found).toMatchObject({ read: 3, of: 3, cursor: null })
  expect(found.events).toMatchObject([
    { messageId: 'bought-1', type: 'track', source: 'acme-shop', body: written, origin: { offset: 0 } },
  ])
  expect(idsOf(await search({ conditions: ['properties.total=31'] }))).toEqual([])
  // Also what was refused, and nothing of another customer.
  expect(idsOf(await search({}))).toEqual(['bought-1', 'refused-1'])
  expect(idsOf(await search({}, tenants.tokens.admin))).toEqual(['bought-1', 'other', 'refused-1'])
  const first = await search({ limit: 1 })
  expect([idsOf(first), first.read, first.of]).toEqual([['bought-1'], 1, 3])
  const rest = await search({ limit: 1, cursor: String(first.cursor) })
  expect([idsOf(rest), rest.read]).toEqual([['refused-1'], 3])
  const later = new Date(Date.now() + 60_000).toISOString()
  expect(idsOf(await search({ from: later }))).toEqual([])
  for (const [body, type] of [
    [{ source: 'globex-shop' }, 'not-found'],
    [{ conditions: ['total'] }, 'bad-request'],
    [{ from: 'yesterday' }, 'bad-request'],
    [{ conditions: undefined }, 'bad-request'],
    [{ cursor: 'x' }, 'bad-request'],
    [
      { cursor: Buffer.from('[3,0,9,[[0,3],[0,3],[0,3],[0,3],[0,3],[0,3],[0,3]]]').toString('base64url') },
      'bad-request',
    ],
  ] as const)
    await expect(search(body)).rejects.toMatchObject({ type: `/problems/${type}` })
  await expect(search({}, acme.without)).rejects.toMatchObject({ status: 403 })
  const audit = await clientOf().get('/v1/audit', { query: { limit: 1_000 } })
  expect(audit.data.entries).toContainEqual(
    expect.objectContaining({
      action: 'content_read',
      by: 'sees',
      detail: 'events by properties.total, userId',
    }),
  )
})

test('dead letters are counted by destination and reason, from the first to the last, within the scope and the time', async () => {
  const all = await summary({})
  expect(all.groups.map(({ destination, reason, count }) => [destination, reason, count])).toEqual([
    ['acme.crm', 'expired', 2],
    ['acme.crm', 'failed_for_good', 1],
    ['globex.crm', 'expired', 1],
  ])
  const [most] = all.groups
  // The steps of a day are minutes.
  expect(all.stepSeconds).toBe(60)
  expect(Math.abs(Date.parse(most?.firstAt ?? '') - minutesBefore(5))).toBeLessThanOrEqual(60_000)
  expect(Math.abs(Date.parse(most?.lastAt ?? '') - minutesBefore(3))).toBeLessThanOrEqual(60_000)
  expect((await summary({ top: 1 })).others).toBe(2)
  expect((await summary({}, acme.without)).groups.map(({ destination }) => destination)).toEqual([
    'acme.crm',
    'acme.crm',
  ])
  expect((await summary({ destination: 'globex.crm' }, acme.without)).groups).toEqual([])
  const recent = { destination: 'acme.crm', from: new Date(minutesBefore(3.5)).toISOString() }
  expect((await summary(recent)).groups).toMatchObject([{ reason: 'expired', count: 1 }])
  await expect(summary({ from: '2020-01-01' })).rejects.toMatchObject({ type: '/problems/bad-request' })
})
