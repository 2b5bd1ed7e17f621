import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createCatalog } from '../../../src/catalog/catalog.ts'
import { Availability } from '../../../src/gateway/availability.ts'
import { Outbox } from '../../../src/gateway/outbox.ts'
import type { RequestTrace } from '../../../src/gateway/request-tracing.ts'
import { createServerCalls } from '../../../src/gateway/server-calls.ts'
import { Sources } from '../../../src/gateway/sources.ts'
import { HeldSender } from './held-sender.ts'

const topics = { deletions: 'deletions', audienceChanges: 'audience-changes' }
const now = (): number => performance.now()

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Opens the calls of a gateway that has one space, whose server key is `secret`. */
function open() {
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
