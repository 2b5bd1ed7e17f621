import { expect, test } from 'vitest'
import { readBlock } from '../../../src/delivery-log/block-reader.ts'
import type { WrittenState } from '../../../src/delivery-log/block-writer.ts'
import { logKinds, type LogKind, type LogRecord } from '../../../src/delivery-log/log-record.ts'
import { type DeliveryState, deliveryStateOf } from '../../../src/delivery-log/delivery-state.ts'
import { blockOf, stateOf } from '../../support/log-blocks.ts'

/** Returns the records of one delivery, one second apart. */
function life(...states: readonly Partial<WrittenState>[]): readonly LogRecord[] {
  return readBlock(
    blockOf(states.map((given, nth) => stateOf({ atMs: 1_000_000 + nth * 1_000, isEnd: false, ...given }))),
    0,
  )
}

const kindOf = (kind: LogKind): number => logKinds.indexOf(kind)
const failed = { kind: kindOf('attempted'), verdict: 2, status: 503 }
const parked = { kind: kindOf('parked'), reason: 'failed', waitMs: 60_000 }
const dead = { kind: kindOf('dead'), reason: 'expired', isEnd: true }
const taken = { kind: kindOf('attempted'), verdict: 1, isEnd: true }

test.each([
  ['nothing is known of it', [], { state: 'under_way', dueMs: 0 }],
  ['its attempt has failed, and nothing else is known', [failed], { state: 'under_way', dueMs: 0 }],
  ['it was parked', [failed, parked], { state: 'waiting', dueMs: 1_061_000 }],
  ['it was parked, and is tried again', [failed, parked, failed], { state: 'under_way', dueMs: 0 }],
  ['an attempt of a second hook came behind its end', [taken, failed], { state: 'delivered', dueMs: 0 }],
  ['it became a dead letter', [failed, parked, failed, dead], { state: 'dead', dueMs: 0 }],
] as const)('where a delivery stands when %s', (_, states, standing) => {
  expect(deliveryStateOf(life(...states))).toEqual(standing)
})

test.each<[LogKind, DeliveryState]>([
  ['attempted', 'delivered'],
  ['delivered', 'delivered'],
  ['dead', 'dead'],
  ['superseded', 'superseded'],
  ['suppressed', 'suppressed'],
  ['omitted', 'omitted'],
  ['filtered', 'filtered'],
])('a delivery that ends with %s is %s', (kind, standing) => {
  expect(deliveryStateOf(life(failed, { kind: kindOf(kind), isEnd: true })).state).toBe(standing)
})

test.each([
  ['waits', [failed, parked], { state: 'waiting', dueMs: 1_063_000 }],
  ['is tried', [failed], { state: 'under_way', dueMs: 0 }],
  ['is delivered', [taken], { state: 'delivered', dueMs: 0 }],
  ['is dead again', [failed, dead], { state: 'dead', dueMs: 0 }],
] as const)('a dead letter whose replay %s is no longer told by its first life', (_, states, standing) => {
  const replayed = states.map((state) => ({ ...state, job: 'job-1' }))
  expect(deliveryStateOf(life(failed, dead, ...replayed))).toEqual(standing)
})

test('of two replays the one that began last says where a delivery stands', () => {
  const first = { ...dead, job: 'job-1' }
  const second = { ...parked, job: 'job-2' }
  expect(deliveryStateOf(life(failed, dead, first, second)).state).toBe('waiting')
  expect(deliveryStateOf(life(failed, first, second, { ...taken, job: 'job-1' })).state).toBe('waiting')
})
