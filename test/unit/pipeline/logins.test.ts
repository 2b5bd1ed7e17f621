import { describe, expect, test } from 'vitest'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import type { QueueClass } from '../../../src/pipeline/pipeline-ports.ts'
import { until } from '../../support/until.ts'
import {
  destinationOf,
  hour,
  refused,
  stage,
  type StageOptions,
  startMs,
  taken,
  TestRecord,
} from './stage.ts'
import { takingQueue } from './taking-queue.ts'

// What becomes of deliveries whose requests need a token. The token endpoint is at `login`, the hook at `crm`.

const login = {
  kind: 'oauth2',
  tokenOrigin: 'https://login.example',
  tokenPath: '/token',
  clientId: 'sluice',
  clientSecret: 'secret',
  clientAuth: 'basic',
} as const
const hook = { id: 'hook', origin: 'https://crm.example', path: '/', headers: [], login }
const crm = destinationOf('crm', { sources: ['shop'], hooks: [hook] })
const unauthorized: Outcome = { kind: 'answer', status: 401 }

function given(token: string): Outcome {
  const body = Buffer.from(JSON.stringify({ access_token: token, expires_in: 600 }))
  return { kind: 'answer', status: 200, body }
}

function track(messageId: string) {
  const value = Buffer.from(JSON.stringify({ type: 'track', event: 'e', userId: 'u', messageId }))
  return { key: null, value, headers: { 'source-id': 'shop' } }
}

function scene(options: StageOptions = {}) {
  const all = stage({ sources: { shop: {} }, destinations: [crm], ...options })
  const to = (host: string) => all.posted.filter((one) => one.to === host)
  return {
    ...all,
    to,
    /** Waits for a request, which is then under way. */
    request: (host: string) => until(`a request to ${host}`, () => to(host)[0]),
    accept: (messageId: string) => all.pipeline.accept(new TestRecord('events', 0), track(messageId)),
  }
}

function tokenOf({ headers }: { readonly headers: readonly string[] }): string | undefined {
  return headers[headers.indexOf('Authorization') + 1]
}

test('nothing is sent before there is a token, and all messages share it', async () => {
  const all = scene()
  for (const id of ['m-1', 'm-2', 'm-3']) all.accept(id)
  await all.settle()
  expect(all.posted.map(({ to }) => to)).toEqual(['login'])
  expect(all.posted[0]?.body).toBe('grant_type=client_credentials')
  all.posted[0]?.answer(given('one'))
  await until('all are sent', () => all.to('crm').length === 3)
  expect(all.to('crm').map(tokenOf)).toEqual(['Bearer one', 'Bearer one', 'Bearer one'])
})

test('while the token endpoint fails, a message waits, and counts no try', async () => {
  const all = scene()
  all.accept('m-1')
  ;(await all.request('login')).answer({ kind: 'answer', status: 503 })
  await until('it waits', () => all.written.length === 1)
  expect(all.told.map((line) => line.split(': ').at(-1))).toEqual(['login'])
  expect(all.written).toMatchObject([
    { topic: 'retry.1m', headers: { 'message-id': 'm-1', attempts: '0', 'expires-at': '0' } },
  ])
  expect(all.to('crm')).toEqual([])
})

async function refusedOnce(options: StageOptions = {}) {
  const all = scene(options)
  all.accept('m-1')
  ;(await all.request('login')).answer(given('one'))
  ;(await all.request('crm')).answer(unauthorized)
  return all
}

describe('a token that is refused', () => {
  test('is replaced, and the request is made again as part of the same try', async () => {
    const all = await refusedOnce({ namesRequests: true })
    ;(await all.request('login')).answer(given('two'))
    const again = await all.request('crm')
    expect(tokenOf(again)).toBe('Bearer two')
    expect(again.headers[again.headers.indexOf('X-Sluice-Attempt') + 1]).toBe('1')
    again.answer(taken)
    await all.settle()
    expect(all.told.map((line) => line.split(' ')[0])).toEqual(['delivered'])
  })

  test('twice is a refusal like any other', async () => {
    const all = await refusedOnce()
    ;(await all.request('login')).answer(given('two'))
    ;(await all.request('crm')).answer(unauthorized)
    await all.settle()
    expect(all.told).toEqual(['dead crm: failed_for_good'])
  })

  test('lets the message wait if no other can be had, and takes its try back', async () => {
    const all = await refusedOnce()
    ;(await all.request('login')).answer({ kind: 'timeout' })
    await until('it waits', () => all.written.length === 1)
    expect(all.written).toMatchObject([{ topic: 'retry.1m', headers: { attempts: '0' } }])
    expect(all.told.at(-1)).toMatch(/: login$/)
  })
})

test('a batch whose token is refused is sent once more, as a whole and as part of the same try', async () => {
  const batch = { maxMessages: 10, maxBytes: 10_000, maxWaitMs: 1, format: 'json' } as const
  const all = scene({ destinations: [{ ...crm, batch }] })
  for (const id of ['m-1', 'm-2']) all.accept(id)
  ;(await all.request('login')).answer(given('one'))
  const first = await all.request('crm')
  first.answer(unauthorized)
  ;(await all.request('login')).answer(given('two'))
  const again = await all.request('crm')
  expect([first, again].map(tokenOf)).toEqual(['Bearer one', 'Bearer two'])
  expect(again.body).toBe(first.body)
  const sent = JSON.parse(again.body).length
  again.answer(taken)
  await until('they are delivered', () => all.told.length === sent)
  expect(all.told.every((line) => line.startsWith('delivered'))).toBe(true)
})

/** Sends a batch of two messages, which is answered so, with a status for each. */
async function batchAnswered(status: number, statuses: readonly number[], options: StageOptions = {}) {
  const batch = { maxMessages: 2, maxBytes: 10_000, maxWaitMs: 2_000, format: 'json' } as const
  const all = scene({ destinations: [{ ...crm, batch }], ...options })
  for (const id of ['m-1', 'm-2']) all.accept(id)
  ;(await all.request('login')).answer(given('one'))
  const first = await all.request('crm')
  const whole = Buffer.from(JSON.stringify({ statuses }))
  first.answer({ kind: 'answer', status, whole })
  return { ...all, first }
}

describe('a batch', () => {
  test.each([207, 200, 400])(
    'of which each message has the status 401, in an answer of %i, is sent once more with another token',
    async (status) => {
      const all = await batchAnswered(status, [401, 401], { namesRequests: true })
      ;(await all.request('login')).answer(given('two'))
      const again = await all.request('crm')
      expect([all.first, again].map(tokenOf)).toEqual(['Bearer one', 'Bearer two'])
      expect(again.body).toBe(all.first.body)
      expect(again.headers[again.headers.indexOf('X-Sluice-Attempt') + 1]).toBe('1')
      again.answer(taken)
      await until('they are delivered', () => all.told.length === 2)
      expect(all.told.every((line) => line.startsWith('delivered'))).toBe(true)
    },
  )

  test('of which each message is refused again is given up, and costs no further token', async () => {
    const all = await batchAnswered(207, [401, 401])
    ;(await all.request('login')).answer(given('two'))
    ;(await all.request('crm')).answer({ kind: 'answer', status: 207, whole: Buffer.from('[401,401]') })
    await all.settle()
    expect(all.told).toEqual(['dead crm: failed_for_good', 'dead crm: failed_for_good'])
    expect(all.posted).toEqual([])
  })

  test('waits as a whole if no other token can be had, and takes its tries back', async () => {
    const all = await batchAnswered(207, [401, 401])
    ;(await all.request('login')).answer({ kind: 'answer', status: 503 })
    await until('both wait', () => all.written.length === 2)
    expect(all.written).toMatchObject([
      { topic: 'retry.1m', headers: { attempts: '0' } },
      { topic: 'retry.1m', headers: { attempts: '0' } },
    ])
  })

  test('of which one message has the status 401 beside others replaces no token', async () => {
    const all = await batchAnswered(207, [200, 401])
    await all.settle()
    expect(all.posted).toEqual([])
    expect(all.told.map((line) => line.replace(/ .*/, '')).toSorted()).toEqual(['dead', 'delivered'])
  })
})

test('a refusal of another kind replaces no token', async () => {
  const all = scene()
  all.accept('m-1')
  ;(await all.request('login')).answer(given('one'))
  ;(await all.request('crm')).answer(refused)
  await all.settle()
  expect(all.told).toEqual(['dead crm: failed_for_good'])
  expect(all.posted).toEqual([])
})

test('a URL without a login gets the message although the login of another one fails', async () => {
  const backup = { id: 'backup', origin: 'https://backup.example', path: '/', headers: [] }
  const all = scene({ destinations: [{ ...crm, hooks: [hook, backup] }] })
  all.accept('m-1')
  await all.settle()
  expect(all.posted.map(({ to }) => to)).toEqual(['login'])
  ;(await all.request('login')).answer({ kind: 'answer', status: 400 })
  ;(await all.request('backup')).answer(taken)
  await all.settle()
  expect(all.told.map((line) => line.split(' ')[0])).toEqual(['delivered'])
})

/** Hands in a message that was pulled from its queue, into which it was written `waitedMs` ago. */
async function pulled(waitedMs: number, failingForMs: number) {
  const queued: QueueClass[] = []
  let nowMs = startMs
  const queue = takingQueue((_id, queueClass) => queued.push(queueClass))
  const all = scene({ queue, loginWaitMs: hour, now: () => nowMs })
  all.accept('m-1')
  ;(await all.request('login')).answer({ kind: 'answer', status: 400 })
  await until('it is queued', () => queued.length === 1)
  nowMs += failingForMs
  const record = new TestRecord('waiting', 1, { timestampMs: nowMs - waitedMs })
  const headers = {
    'source-id': 'shop',
    'destination-id': 'crm',
    'message-id': 'm-2',
    'message-type': 'track',
    'first-seen': '0',
    origin: 'events/2/7',
    attempts: '0',
    rung: '0',
    'expires-at': '0',
  }
  all.pipeline.acceptWaiting(record, { ...track('m-2'), headers }, 'fresh')
  await all.settle()
  return { ...all, record }
}

describe('what waits in the queue for a login', () => {
  test.each([
    [hour - 1, 5 * hour],
    [5 * hour, hour - 1],
  ])('goes back to it after %d ms, if the login has failed for %d ms', async (waitedMs, failingMs) => {
    const { record, told } = await pulled(waitedMs, failingMs)
    expect([record.givenBack, record.settled]).toEqual([1, 0])
    expect(told.filter((line) => line.startsWith('dead'))).toEqual([])
  })

  test('is given up when both have lasted for delivery.loginWait', async () => {
    const { record, told, written } = await pulled(hour, hour)
    expect(told.at(-1)).toBe('dead crm: login_failed')
    expect(written.at(-1)?.headers['detail']).toContain('status 400')
    await until('it is settled', () => record.settled === 1)
  })
})
