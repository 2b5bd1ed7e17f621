import { afterEach, describe, expect, test } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import { createSender } from '../../../src/delivery/send/sender.ts'
import type { Judgement, WaitingDelivery } from '../../../src/message/judgement.ts'
import {
  answer,
  inTurn,
  neverAnswer,
  type Receiver,
  type Script,
  startReceiver,
} from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { destinationOf, type Stage, stage } from '../../unit/pipeline/stage.ts'

/** Tests of Identifies on their way to real servers. Kafka and the judge are test doubles. */

/** A short timeout in milliseconds, for requests that are never answered. */
const shortMs = 400
/** A timeout so long, in milliseconds, that no request reaches it, even on a busy machine. */
const longMs = 60_000
const ended: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

async function scene(
  script: Script,
  {
    timeoutMs = longMs,
    judge,
  }: { timeoutMs?: number; judge?: (waiting: WaitingDelivery) => Promise<Judgement> } = {},
): Promise<{ server: Receiver; all: Stage; values: () => string[] }> {
  const server = await startReceiver(script)
  const sender = createSender({
    policy: createAddressPolicy(['127.0.0.1']),
    timeoutMs,
    poolIdleMs: 1_000,
  })
  const all = stage({
    sender,
    destinations: [
      destinationOf('crm', { hooks: [{ id: 'hook', origin: server.origin, path: '/', headers: [] }] }),
    ],
    ...(judge !== undefined && { judge }),
  })
  ended.push(
    () => server.stop(),
    () => sender.close(),
    async () => all.pipeline.stop(),
  )
  return { server, all, values: () => server.requests.map(({ body }) => body.toString()) }
}

const reset: Script = (_request, response) => void response.socket?.resetAndDestroy()

describe('of one property', () => {
  test('the newest waits for the end of the one under way, and those between are not sent', async () => {
    const held: (() => void)[] = []
    const { all, values } = await scene((request, response, nth) => {
      if (nth > 1) answer(200)(request, response, nth)
      else held.push(() => answer(200)(request, response, nth))
    })
    for (let nth = 1; nth <= 20; nth++) all.identify(`v${nth}`)
    await until('the first has come', () => held.length === 1)
    expect(values()).toEqual(['v1'])
    for (const release of held) release()
    await until('all are settled', () => all.pipeline.held.records === 0)
    expect(values()).toEqual(['v1', 'v20'])
    expect(all.told.filter((line) => line.startsWith('superseded'))).toHaveLength(18)
    await until('all places are free', () => all.pipeline.inFlight === 0)
  })

  test('values of many users, faster than the server takes them: the last of each user is the last that came', async () => {
    const { all, server } = await scene((request, response, nth) => {
      setTimeout(() => answer(nth % 7 === 0 ? 500 : 200)(request, response, nth), nth % 5)
    })
    const last = new Map<string, string>()
    for (let nth = 0; nth < 600; nth++) {
      const userId = `u${nth % 40}`
      const value = `${userId}:${nth}`
      last.set(userId, value)
      all.identify(value, { userId })
      if (nth % 50 === 0) await all.settle()
    }
    await until('all are settled', () => all.pipeline.held.records === 0 && all.pipeline.inFlight === 0)
    const came = new Map(
      server.requests.map(({ body }) => [body.toString().split(':')[0] ?? '', body.toString()]),
    )
    expect(came).toEqual(last)
  })
})

describe('after an attempt that may have got through', () => {
  test.each<[string, Script]>([
    ['timed out', neverAnswer],
    ['was reset', reset],
    ['was answered 503', answer(503)],
  ])('and %s, the present value is sent once more when its retry is due', async (_what, first) => {
    const current: Judgement = {
      kind: 'send_current',
      messageId: 'id v2',
      body: Buffer.from('v2'),
      since: 'since v2',
    }
    const { all, values } = await scene(inTurn(first, answer(200)), {
      timeoutMs: shortMs,
      judge: async ({ isUncertain }) => (isUncertain ? current : { kind: 'superseded' }),
    })
    all.identify('v1')
    all.identify('v2')
    await until('both are settled', () => all.pipeline.held.records === 0)
    expect(values()).toEqual(['v1', 'v2'])
    all.retry(all.written[0])
    await until('the retry is settled', () => all.pipeline.held.records === 0)
    expect(values()).toEqual(['v1', 'v2', 'v2'])
  })

  test('not after one that was refused', async () => {
    const { all, values } = await scene(inTurn(answer(429), answer(200)), {
      judge: async ({ isUncertain }) => ({ kind: isUncertain ? 'send' : 'superseded' }),
    })
    all.identify('v1')
    all.identify('v2')
    await until('both are settled', () => all.pipeline.held.records === 0)
    all.retry(all.written[0])
    await until('the retry is settled', () => all.pipeline.held.records === 0)
    expect(values()).toEqual(['v1', 'v2'])
  })
})
