import * as fc from 'fast-check'
import type { WrittenState } from '../../../src/delivery-log/block-writer.ts'
import { logKinds, logOutcomes, logVerdicts } from '../../../src/delivery-log/log-record.ts'

const text = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 100 }),
  fc.constantFrom('', 'crm', 'x'.repeat(63), 'x'.repeat(64), 'é漢😀'.repeat(50)),
)
const atMs = fc.integer({ min: 0, max: 4_102_444_800_000 })

/** Any state that may be written. */
export const arbitraryState: fc.Arbitrary<WrittenState> = fc.record({
  kind: fc.nat(logKinds.length - 1),
  atMs,
  isEnd: fc.boolean(),
  weight: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
  destination: text,
  hook: text,
  source: text,
  messageId: text,
  messageType: text,
  originTopic: text,
  originPartition: fc.nat(10_000),
  originOffset: fc.integer({ min: 0, max: 2 ** 50 }),
  attempt: fc.nat(100),
  verdict: fc.nat(logVerdicts.length - 1),
  outcome: fc.nat(logOutcomes.length - 1),
  status: fc.nat(999),
  durationMs: fc.nat(3_600_000),
  reason: text,
  error: text,
  waitMs: fc.nat(2 ** 31 - 1),
  firstSeenMs: atMs,
  user: fc.oneof(
    fc.constant(''),
    fc.string({ unit: fc.nat(255).map((code) => String.fromCharCode(code)), minLength: 6, maxLength: 6 }),
  ),
  job: text,
  values: fc.constant(''),
  answer: fc.oneof(fc.constant(undefined), fc.uint8Array({ minLength: 1, maxLength: 2_048 })),
})
