import { expect, test } from 'vitest'
import { createUserHash } from '../../src/delivery-log/user-hash.ts'
import { blockOf, stateOf } from './log-blocks.ts'

/** Tests of the delivery log in the admin API. They are the same for every store of the log. */

export const userKey = 'a key of more than sixteen characters'
/** The start of a minute, in epoch milliseconds. */
const startMs = Math.floor(Date.now() / 60_000) * 60_000 - 10 * 60_000
const iso = (ms: number): string => new Date(ms).toISOString()
const since = { from: iso(startMs - 1_000) }

export const recordsInLog = 27

/** Returns the log that the tests search, as one value of the topic `attempts`. */
export function logForAdmin(): Buffer {
  return blockOf(states())
}

/** Returns the records of the log. One message waits for its next attempt, and 25 messages are delivered. */
function states() {
  const failed = {
    messageId: 'order/4711 €',
    destination: 'erp',
    firstSeenMs: startMs - 5,
    user: createUserHash(userKey)(Buffer.from('ann@example.com')),
    isEnd: false,
  }
  return [
    stateOf({ ...failed, atMs: startMs, verdict: 2, status: 503, durationMs: 40 }),
    stateOf({
      ...failed,
      atMs: startMs + 3,
      kind: 1,
      hook: '',
      verdict: 0,
      outcome: 0,
      status: 0,
      durationMs: 0,
      reason: 'failed',
      waitMs: 60_000,
    }),
    ...Array.from({ length: 25 }, (_, at) =>
      stateOf({ messageId: `fine-${at}`, atMs: startMs + 60_000 + at }),
    ),
  ]
}

type Answer = { status: number; json: Record<string, unknown> }

/**
 * Declares the tests. `ask` sends GET if there is no body, and POST otherwise. `behindMs` is the value that
 * `/v1/log` has to answer.
 */
export function testAdminLog(
  ask: (path: string, body?: unknown) => Promise<Answer>,
  behindMs: number | null,
): void {
  test('the life of a message is told by destination, with when it is tried again', async () => {
    const dueAt = iso(startMs + 60_003)
    const { status, json } = await ask(`/v1/log/messages/${encodeURIComponent('order/4711 €')}`)
    const origin = { topic: 'events', partition: 0, offset: 0 }
    expect([status, json]).toEqual([
      200,
      {
        messageId: 'order/4711 €',
        deliveries: [
          {
            destination: 'erp',
            state: 'waiting',
            dueAt,
            records: [
              expect.objectContaining({
                at: iso(startMs),
                kind: 'attempted',
                hook: 'main',
                verdict: 'retry',
                outcome: 'answer',
                status: 503,
                durationMs: expect.closeTo(40, -1),
                reason: null,
                dueAt: null,
                firstSeenAt: iso(startMs - 5),
                origin,
              }),
              expect.objectContaining({
                kind: 'parked',
                hook: null,
                status: null,
                durationMs: null,
                reason: 'failed',
                dueAt,
              }),
            ],
          },
        ],
      },
    ])
  })

  test('pages go on where the one before ended, newest first', async () => {
    const ids: unknown[] = []
    let cursor: unknown
    do {
      const { json } = await ask('/v1/log/search', {
        ...since,
        destination: 'crm',
        limit: 10,
        ...(cursor !== undefined && { cursor }),
      })
      const records: { messageId: string }[] = Object(json['records'])
      ids.push(...records.map(({ messageId }) => messageId))
      cursor = json['cursor']
    } while (cursor !== null)
    expect(ids).toEqual(Array.from({ length: 25 }, (_, at) => `fine-${24 - at}`))
  })

  test.each([
    { filter: { user: 'ann@example.com' }, count: 2 },
    { filter: { user: 'bob@example.com' }, count: 0 },
    { filter: { isFailed: true }, count: 1 },
    { filter: { kinds: ['parked', 'dead'] }, count: 1 },
    { filter: { reason: 'failed' }, count: 1 },
    { filter: { status: 503, outcome: 'answer', source: 'shop', hook: 'main' }, count: 1 },
    { filter: { messageId: 'order/4711 €' }, count: 2 },
    { filter: { to: iso(startMs + 1) }, count: 1 },
    { filter: { replay: 'nobody' }, count: 0 },
  ])('a search for $filter finds $count', async ({ filter, count }) => {
    const { status, json } = await ask('/v1/log/search', { ...since, ...filter })
    expect([status, Object(json['records']).length]).toEqual([200, count])
  })

  test('minutes are counted, with how long attempts took', async () => {
    const { json } = await ask('/v1/log/stats', since)
    expect(json['minutes']).toEqual([
      expect.objectContaining({ minute: iso(startMs), succeeded: 0, failed: 1, parked: 1 }),
      expect.objectContaining({ minute: iso(startMs + 60_000), succeeded: 25, failed: 0, parked: 0 }),
    ])
    const [first]: { durationMs: { p95: number } }[] = Object(json['minutes'])
    expect(first?.durationMs.p95).toBeCloseTo(40, -1)
  })

  const failed = { succeeded: [0, 0], failed: [1, 0], dead: [0, 0] }
  const fine = { succeeded: [0, 25], failed: [0, 0], dead: [0, 0] }

  test.each([
    ['destination', { erp: failed, crm: fine }],
    ['status', { 503: failed, 200: fine }],
    ['all', { '': { ...fine, failed: failed.failed } }],
  ])(
    'counts by %s have a number for each step, the group with most failures first',
    async (groupBy, groups) => {
      const range = { from: iso(startMs), to: iso(startMs + 120_000), step: '1m' }
      const { status, json } = await ask('/v1/log/stats', { ...range, groupBy })
      expect([status, json['times'], json['others']]).toEqual([200, [iso(startMs), iso(startMs + 60_000)], 0])
      const found: readonly { readonly key: string }[] = Object(json['groups'])
      expect(Object.fromEntries(found.map(({ key, ...counts }) => [key, counts]))).toEqual(groups)
      expect(found[0]?.key).toBe(groupBy === 'all' ? '' : groupBy === 'status' ? '503' : 'erp')
    },
  )

  test('the groups that are left out are counted', async () => {
    const { json } = await ask('/v1/log/stats', { ...since, step: '1h', groupBy: 'destination', top: 1 })
    expect(json).toMatchObject({ groups: [{ key: 'erp' }], others: 1 })
  })

  test('how far it reaches back is told', async () => {
    const { json } = await ask('/v1/log')
    expect(json).toMatchObject({ oldest: iso(startMs), records: 27 })
    expect(json['behindMs']).toBe(behindMs)
  })

  test('a cursor of no page is refused', async () => {
    const { status, json } = await ask('/v1/log/search', { cursor: 'nonsense' })
    expect([status, json['type'], json['detail']]).toEqual([
      400,
      '/problems/bad-request',
      expect.stringContaining('cursor'),
    ])
  })
}
