import { afterEach, describe, expect, test } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import { readsStatuses, settledOf, settlementOf } from '../../../src/delivery/batch/batch-answer.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { createSender, type Exchange, type Sender } from '../../../src/delivery/send/sender.ts'
import { answer, isWholeRequest, startRawReceiver, startReceiver } from '../../support/receiver.ts'

const keptAnswerBytes = 100
const settings = { poolIdleMs: 300, keptAnswerBytes }
/** The deadline where a test waits for it, in milliseconds. */
const shortMs = 2_000
const ended: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

function stopped<T extends { stop(): Promise<void> }>(one: T): T {
  ended.push(() => one.stop())
  return one
}

const userId = '漢字-の-Zoë'

/** Posts a request that contains secrets, waits until its slot is free, and returns the outcome. */
async function outcomeOf(
  by: Sender,
  origin: string,
  rest: Pick<Exchange, 'userIds' | 'reads'> = {},
): Promise<Outcome | undefined> {
  const released = Promise.withResolvers<void>()
  const outcomes: Outcome[] = []
  const headers = ['Authorization', 'Bearer planted-secret']
  const target = { origin, path: '/', headers, secrets: ['planted-secret'] }
  by.post(target, Buffer.from('{}'), ['X-Signature', 'planted-signature'], {
    userId: Buffer.from(userId),
    ...rest,
    answered: (outcome) => void outcomes.push(outcome),
    released: () => released.resolve(),
  })
  await released.promise
  expect(outcomes).toHaveLength(1)
  return outcomes[0]
}

const textOf = (outcome: Outcome | undefined): string | undefined =>
  outcome?.kind === 'answer' && outcome.body !== undefined ? Buffer.from(outcome.body).toString() : undefined

const policy = createAddressPolicy(['127.0.0.1'])

function sender(timeoutMs = 30_000): Sender {
  const made = createSender({ policy, timeoutMs, ...settings })
  ended.push(() => made.close())
  return made
}

describe('a failed answer', () => {
  test('keeps a failed answer without what was sent in secret', async () => {
    const server = stopped(
      await startReceiver((request, response) => {
        const { authorization, 'x-signature': signature } = request.headers
        response.writeHead(422).end(`no: ${authorization}, ${String(signature)}`)
      }),
    )
    const outcome = await outcomeOf(sender(), server.origin)
    expect(outcome).toMatchObject({ kind: 'answer', status: 422 })
    expect(textOf(outcome)).toBe('no: Bearer [redacted], [redacted]')
  })

  test('keeps no part of the user whose id the limit cuts inside of a character', async () => {
    const server = stopped(await startReceiver(answer(404, {}, `${'x'.repeat(92)}${userId} is not known`)))
    expect(textOf(await outcomeOf(sender(), server.origin))).toBe(`${'x'.repeat(92)}[redacte`)
  })

  test('keeps no user of a batch, and the whole answer where it is read', async () => {
    const text = JSON.stringify({ error: `no ${userId}`, statuses: [400, 200] })
    const json = { 'Content-Type': 'application/json' }
    const server = stopped(await startReceiver({ '/': answer(400, json, text) }))
    const batch = { userIds: [null, Buffer.from(userId)], reads: readsStatuses }
    const outcome = await outcomeOf(sender(), server.origin, batch)
    expect(textOf(outcome)).toBe('{"error":"no [redacted]","statuses":[400,200]}')
    expect(outcome?.kind === 'answer' && Buffer.from(outcome.whole ?? []).toString()).toBe(text)
  })

  test('is not read as a whole if it is too long, and ends at the deadline if it does not end', async () => {
    const json = { 'Content-Type': 'application/json' }
    const server = stopped(
      await startReceiver((_request, response, nth) => {
        response.writeHead(207, json)
        if (nth === 1) response.end(`[${' '.repeat(65_536)}200]`)
        else response.write('[200, ')
      }),
    )
    const by = sender(shortMs)
    const reads = readsStatuses
    expect(await outcomeOf(by, server.origin, { reads })).toEqual({ kind: 'answer', status: 207 })
    const unfinished = await outcomeOf(by, server.origin, { reads })
    expect(unfinished).toMatchObject({ kind: 'answer', status: 207 })
    expect(settledOf(settlementOf(unfinished ?? { kind: 'timeout' }, 1), 0).verdict.kind).toBe('retry')
  })

  test('keeps no success, and no more than it may of a failure', async () => {
    const long = 'x'.repeat(100_000)
    const server = stopped(await startReceiver({ '/': answer(200, {}, long) }))
    expect(await outcomeOf(sender(), server.origin)).toEqual({ kind: 'answer', status: 200 })
    const failing = stopped(await startReceiver({ '/': answer(500, {}, long) }))
    expect(textOf(await outcomeOf(sender(), failing.origin))).toBe('x'.repeat(keptAnswerBytes))
    const silent = stopped(await startReceiver({ '/': answer(503, { 'retry-after': '7' }) }))
    expect(await outcomeOf(sender(), silent.origin)).toEqual({
      kind: 'answer',
      status: 503,
      retryAfterMs: 7_000,
    })
  })

  test.each([
    { how: 'takes too long', end: false },
    { how: 'breaks off', end: true },
  ])('takes an answer whose body $how for that answer, with what came of it', async ({ end }) => {
    const server = stopped(
      await startRawReceiver({
        data(socket, received) {
          if (!isWholeRequest(received)) return
          socket.write('HTTP/1.1 500 Oh\r\ncontent-length: 50\r\n\r\nthe token planted-sec')
          if (end) socket.end()
        },
      }),
    )
    const outcome = await outcomeOf(sender(shortMs), server.origin)
    expect(outcome).toMatchObject({ kind: 'answer', status: 500 })
    expect(textOf(outcome)).toBe('the token [redacted]')
  })
})
