import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createCatalog } from '../../../../src/catalog/catalog.ts'
import { Availability } from '../../../../src/gateway/outbox/availability.ts'
import { Outbox } from '../../../../src/gateway/outbox/outbox.ts'
import type { RequestTrace } from '../../../../src/gateway/calls/request-tracing.ts'
import { createServerCalls } from '../../../../src/gateway/calls/deletion-and-audience-calls.ts'
import { Sources } from '../../../../src/gateway/calls/sources.ts'
import { defaultLimits } from '../../../../src/message/limits.ts'
import { HeldSender } from '../held-sender.ts'

const topics = { deletions: 'deletions', audienceChanges: 'audience-changes' }
const now = (): number => performance.now()

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Opens the calls of a gateway that has one space, whose server key is `secret`. */
function open(maxBytes = defaultLimits.maxBytes) {
  const source = { id: 'space', name: 'space', kind: 'audiences', enabled: true, writeKeys: [] } as const
  const catalog = createCatalog([{ ...source, serverKeys: ['secret'], maxPerSecond: undefined }], [], '1')
  const settings = { topics: Object.values(topics), partitions: 3, check: async () => [], onChange() {}, now }
  const limits = { lingerMs: 5, ackTimeoutMs: 1_500, bufferBytes: 10_000_000, batchBytes: 900_000 }
  const outbox = new Outbox({
    sender: new HeldSender(),
    availability: new Availability(settings),
    now,
    ...limits,
  })
  const calls = createServerCalls({
    sources: new Sources(() => catalog, now),
    outbox,
    topics,
    partitions: 3,
    limits: { ...defaultLimits, maxBytes },
    now: Date.now,
  })
  return { outbox, calls }
}

function traced(bytes: number): RequestTrace {
  return { sends: () => ({ headers: { tracestate: 'x'.repeat(bytes) }, bytes, end() {} }), end() {} }
}

const change = { type: 'membership', audienceId: 'a', audienceName: 'A', userId: 'u', member: true }
const bodies = {
  audienceChanges: { changes: [change, { ...change, userId: 'v' }] },
  deletion: { userId: 'u', requestId: 'r-1' },
}

test.each([
  ['audienceChanges', 2],
  ['deletion', 1],
] as const)('the headers of a trace count among the bytes of each record of %s', (name, records) => {
  const bytesWith = (trace: RequestTrace | undefined): number => {
    const { calls, outbox } = open()
    void calls[name](Buffer.from(JSON.stringify(bodies[name])), 'Bearer secret', trace)
    expect(outbox.records).toBe(records)
    return outbox.bytes
  }
  expect(bytesWith(traced(500)) - bytesWith(undefined)).toBe(records * 500)
})

const trait = { type: 'trait', traitId: 't', traitName: 'T', userId: 'u', value: 1 }

test.each([
  ['an empty key', { ...trait, traitKey: '' }, 'changes[0].traitKey'],
  ['no value', { ...trait, value: undefined }, 'changes[0] must have required properties value'],
  ['a time that is null', { ...trait, changedAt: null }, 'changes[0].changedAt'],
  ['a field of the other type', { ...trait, member: true }, 'changes[0].member is not a known field'],
  ['a member that is text', { ...change, member: 'yes' }, 'changes[0].member must be boolean'],
  ['another type', { ...change, type: 'sync' }, 'changes[0].type must be membership or trait'],
  ['no type', { ...change, type: undefined }, 'changes[0].type must be membership or trait'],
  ['more levels than a worker takes', { ...trait, value: nested(100) }, 'changes[0] has too many levels'],
  [
    'a name of no property',
    { ...change, audienceName: '🎉' },
    'changes[0].audienceName has no letter and no digit',
  ],
  ['a trait of no property', { ...trait, traitName: '—', traitKey: null }, 'or set traitKey'],
  ['a key of spaces', { ...trait, traitKey: ' ' }, 'changes[0].traitKey has only spaces'],
  [
    'a time far ahead',
    { ...trait, changedAt: '9999-01-01' },
    'changes[0].changedAt is more than 5 minutes ahead',
  ],
])('a change with %s is refused by the field that is wrong', async (_, one, where) => {
  const { calls, outbox } = open()
  const answer = await calls.audienceChanges(Buffer.from(JSON.stringify({ changes: [one] })), 'Bearer secret')
  expect(answer.status).toBe(400)
  expect(JSON.parse(answer.body).message).toContain(where)
  expect(outbox.records).toBe(0)
})

test('a change that is a few minutes ahead is accepted, since clocks differ', () => {
  const { calls, outbox } = open()
  const changedAt = new Date(Date.now() + 299_000).toISOString()
  const body = JSON.stringify({ changes: [{ ...trait, changedAt }] })
  void calls.audienceChanges(Buffer.from(body), 'Bearer secret')
  expect(outbox.records).toBe(1)
})

test('a deletion over the worker’s limit is refused, because the worker would not do it', async () => {
  const { calls, outbox } = open(1_024)
  const body = Buffer.from(JSON.stringify({ userId: 'ü'.repeat(500) }))
  const answer = await calls.deletion(body, 'Bearer secret')
  expect([answer.status, JSON.parse(answer.body).code]).toEqual([400, 'payload_too_large'])
  expect(outbox.records).toBe(0)
})

/** Returns lists in each other, of this many levels. */
function nested(levels: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = [value]
  return value
}
