import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { basic, startGateway, type TestGateway, type WrittenRecord } from '../../support/gateway.ts'
import { newIds } from '../../e2e/scene.ts'

let gateway: TestGateway

beforeAll(async () => {
  gateway = await startGateway({
    sources: [
      { id: 'shop', writeKeys: ['KEY'] },
      { id: 'app', writeKeys: ['APP-KEY'] },
    ],
    // With this wait, every message is certainly still in flight when the next one comes.
    variables: { SLUICE_GATEWAY_LINGER: '1s' },
  })
})

afterAll(() => gateway.stop())

function batchOf(ids: readonly string[], more: object = {}): string {
  const batch = ids.map((messageId) => ({
    type: 'track',
    userId: 'u1',
    event: 'E',
    timestamp: '2026-01-01T00:00:00.000Z',
    messageId,
    ...more,
  }))
  return JSON.stringify({ batch, sentAt: '2026-01-01T00:00:01.000Z' })
}

async function recordsOf(id: string): Promise<WrittenRecord[]> {
  return (await gateway.read('events')).filter(({ value }) => value['messageId'] === id)
}

describe('while a message is in flight', () => {
  test('identical ones are answered with it, and written once', async () => {
    const [one = '', other = ''] = newIds(2)
    const before = await gateway.process.metric('sluice_gateway_coalesced_total')
    const replies = await Promise.all(
      Array.from({ length: 5 }, () => gateway.post('/v1/batch', batchOf([one, other]), basic('KEY'))),
    )
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    expect([(await recordsOf(one)).length, (await recordsOf(other)).length]).toEqual([1, 1])
    expect(await gateway.process.metric('sluice_gateway_coalesced_total')).toBe(before + 8)
  })

  test('those of a request that is sent again, at another time, are written once too', async () => {
    const [id = ''] = newIds(1)
    const body = batchOf([id])
    const again = body.replace('"sentAt":"2026-01-01T00:00:01.000Z"', '"sentAt":"2026-01-01T00:00:02.000Z"')
    expect(again).not.toBe(body)
    const replies = await Promise.all(
      [body, again].map((sent) => gateway.post('/v1/batch', sent, basic('KEY'))),
    )
    expect(replies.map(({ status }) => status)).toEqual([200, 200])
    expect(await recordsOf(id)).toHaveLength(1)
  })

  test('those that differ in anything are written too', async () => {
    const [id = ''] = newIds(1)
    const bodies = [{}, { properties: { a: 1 } }, { timestamp: '2026-01-01T00:00:00.001Z' }].map((more) =>
      batchOf([id], more),
    )
    bodies.push(batchOf([id]).replace('{', '{"context":{"ip":"::1"},'))
    const replies = await Promise.all(bodies.map((body) => gateway.post('/v1/batch', body, basic('KEY'))))
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(await recordsOf(id)).toHaveLength(4)
  })

  test('those of another source are written too', async () => {
    const [id = ''] = newIds(1)
    await Promise.all(['KEY', 'APP-KEY'].map((key) => gateway.post('/v1/batch', batchOf([id]), basic(key))))
    const sources = (await recordsOf(id)).map(({ headers }) => headers['source-id'])
    expect(new Set(sources)).toEqual(new Set(['app', 'shop']))
  })

  test('those without an id of their own are different ones', async () => {
    const body = { type: 'page', userId: 'without-id' }
    await Promise.all([1, 2, 3].map(() => gateway.post('/v1/page', body, basic('KEY'))))
    const records = (await gateway.read('events')).filter(({ key }) => key === 'without-id')
    expect(new Set(records.map(({ value }) => value['messageId'])).size).toBe(3)
  })
})

test('once a message is acknowledged, a repeat is written: the worker knows it by its messageId', async () => {
  const [id = ''] = newIds(1)
  await gateway.post('/v1/batch', batchOf([id]), basic('KEY'))
  await gateway.post('/v1/batch', batchOf([id]), basic('KEY'))
  expect(await recordsOf(id)).toHaveLength(2)
})
