import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { partitionOf } from '../../../src/message/partitioner.ts'
import { basic, startGateway, type TestGateway } from '../../support/gateway.ts'
import { newIds } from '../../e2e/scene.ts'

let gateway: TestGateway

const shopKey = 'server-key-of-shop-and-app'
const spaceKey = 'server-key-of-the-space'
const spacesKey = 'server-key-of-two-spaces'

beforeAll(async () => {
  gateway = await startGateway({
    sources: [
      { id: 'shop', writeKeys: ['KEY'], serverKeys: [shopKey] },
      { id: 'app', serverKeys: [shopKey] },
      { id: 'other' },
      { id: 'space', kind: 'audiences', serverKeys: [spaceKey, spacesKey] },
      { id: 'space-two', kind: 'audiences', serverKeys: [spacesKey] },
    ],
  })
})

afterAll(() => gateway.stop())

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

describe('a key that is public', () => {
  test.each([
    ['no key', {}],
    ['an unknown key', bearer('no-such-key-anywhere')],
    ['a write key as Bearer', bearer('KEY')],
    ['a write key by Basic', basic('KEY')],
  ])('%s is not enough: 401', async (_, headers) => {
    for (const [path, body] of [
      ['/v1/deletions', { userId: 'u1', writeKey: shopKey }],
      ['/v1/audience-changes', { changes: [] }],
    ] as const) {
      const reply = await gateway.post(path, body, headers)
      expect([reply.status, reply.body['code']]).toEqual([401, 'unknown_server_key'])
    }
    expect(await gateway.read('deletions')).toEqual([])
  })

  test('a server key is no write key', async () => {
    const reply = await gateway.post('/v1/track', { userId: 'u1', event: 'E' }, bearer(shopKey))
    expect(reply.status).toBe(401)
  })
})

describe('a deletion', () => {
  test('is written for all sources of its key, or those that it names', async () => {
    const [all = '', one = ''] = newIds(2)
    const replies = [
      await gateway.post('/v1/deletions', { userId: all }, bearer(shopKey)),
      await gateway.post(
        '/v1/deletions',
        { userId: one, sources: ['app'], requestId: 'r-1' },
        basic(shopKey),
      ),
    ]
    expect(replies.map(({ status }) => status)).toEqual([200, 200])
    expect(replies[1]?.body).toEqual({ success: true, requestId: 'r-1' })
    const records = await gateway.read('deletions')
    const of = (userId: string) => records.find(({ key }) => key === userId)
    expect(of(all)?.value).toEqual({
      requestId: replies[0]?.body['requestId'],
      userId: all,
      sources: ['shop', 'app'],
      requestedAt: expect.stringMatching(/^\d{4}-.*Z$/),
    })
    expect(of(one)?.value).toMatchObject({ requestId: 'r-1', sources: ['app'] })
    expect(of(one)?.partition).toBe(partitionOf(one, 3))
  })

  test('of a source of somebody else is 403', async () => {
    const [userId = ''] = newIds(1)
    const reply = await gateway.post('/v1/deletions', { userId, sources: ['shop', 'other'] }, bearer(shopKey))
    expect([reply.status, reply.body['code']]).toEqual([403, 'source_not_allowed'])
    expect((await gateway.read('deletions')).some(({ key }) => key === userId)).toBe(false)
  })

  test.each([
    [{}, 'userId'],
    [{ userId: '' }, 'userId'],
    [{ userId: 7 }, 'userId'],
    [{ userId: 'u', sources: [] }, 'sources'],
    [{ userId: 'u', sources: 'shop' }, 'sources'],
    [{ userId: 'u', requestId: 'with space' }, 'requestId'],
    [{ userId: 'u', everything: true }, 'everything is not a known field'],
  ])('that is not as it has to be is 400, and says where: %j', async (body, where) => {
    const reply = await gateway.post('/v1/deletions', body, bearer(shopKey))
    expect([reply.status, reply.body['code']]).toEqual([400, 'invalid_body'])
    expect(String(reply.body['message'])).toContain(where)
  })
})

const changedAt = '2026-03-01T12:00:00.000Z'
const membership = (userId: string) => ({
  type: 'membership',
  audienceId: 'a1',
  audienceName: 'Big spenders',
  userId,
  member: true,
})

describe('changes of audiences', () => {
  test('are written for the space of their key, with the time when they came where they have none', async () => {
    const [one = '', other = ''] = newIds(2)
    const changes = [
      { ...membership(one), changedAt },
      { type: 'trait', traitId: 't1', traitName: 'Total', userId: other, value: { a: [1, null] } },
    ]
    const reply = await gateway.post('/v1/audience-changes', { changes }, bearer(spaceKey))
    expect([reply.status, reply.body]).toEqual([200, { success: true }])
    const records = await gateway.read('audience-changes')
    const [first, second] = [one, other].map((key) => records.find((record) => record.key === key))
    expect(first?.headers).toEqual({ 'source-id': 'space' })
    expect(first?.value).toEqual({ ...membership(one), changedAt })
    expect(first?.partition).toBe(partitionOf(one, 3))
    expect(second?.value).toEqual({ ...changes[1], changedAt: expect.stringMatching(/Z$/) })
  })

  test('name their space where the key has several', async () => {
    const [userId = ''] = newIds(1)
    const body = { changes: [membership(userId)] }
    expect((await gateway.post('/v1/audience-changes', body, bearer(spacesKey))).status).toBe(403)
    const named = { ...body, source: 'space-two' }
    expect((await gateway.post('/v1/audience-changes', named, bearer(spacesKey))).status).toBe(200)
    const record = (await gateway.read('audience-changes')).find(({ key }) => key === userId)
    expect(record?.headers).toEqual({ 'source-id': 'space-two' })
  })

  test('need a key of a space', async () => {
    const body = { source: 'shop', changes: [membership('u')] }
    expect((await gateway.post('/v1/audience-changes', body, bearer(shopKey))).status).toBe(403)
  })

  test.each([
    ['a number that would become null', '1e999'],
    ['more levels than can be written', '['.repeat(100_000) + ']'.repeat(100_000)],
  ])('with %s are 400', async (_, value) => {
    const change = `{"type":"trait","traitId":"t1","traitName":"Total","userId":"u","value":${value}}`
    const reply = await gateway.post('/v1/audience-changes', `{"changes":[${change}]}`, bearer(spaceKey))
    expect([reply.status, reply.body['code']]).toEqual([400, 'invalid_body'])
    expect(reply.body['message']).toContain('changes[0] has too many levels, or a number')
  })

  test('are taken all or none, and the answer says which is wrong', async () => {
    const [userId = ''] = newIds(1)
    for (const bad of [
      { ...membership('u'), member: 'yes' },
      { ...membership('u'), changedAt: '2026-02-30T00:00:00Z' },
      { ...membership('u'), type: 'sync' },
      { ...membership('u'), value: 1 },
      'text',
    ]) {
      const changes = [membership(userId), bad]
      const reply = await gateway.post('/v1/audience-changes', { changes }, bearer(spaceKey))
      expect([reply.status, reply.body['code']]).toEqual([400, 'invalid_body'])
      expect(String(reply.body['message'])).toContain('changes[1]')
    }
    expect((await gateway.read('audience-changes')).some(({ key }) => key === userId)).toBe(false)
  })
})
