import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { encodeStateKey, type StateKey } from '../../../src/audience/records/state-record.ts'
import { unitOfWaiting, unitsOfState } from '../../../src/growth/targets.ts'
import { partitionOf } from '../../../src/message/partitioner.ts'
import { type RetryState, encodeRetryState } from '../../../src/retry/retry-state.ts'
import type { Change } from '../../../src/growth/plan.ts'

const change = fc
  .tuple(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 40 }))
  .map(([from, more]): Change => ({
    from: { partitions: from, generation: 1 },
    to: { partitions: from + more, generation: 2 },
  }))
const userId = fc.string({ minLength: 1, maxLength: 12 })

/** Returns the new units that get a copy of a record that each of the old units has. */
function heirs(stateKey: StateKey, grown: Change): number[] {
  const key = encodeStateKey(stateKey)
  return Array.from({ length: grown.from.partitions }, (_, unit) => unitsOfState(key, unit, grown))
    .flat()
    .toSorted((a, b) => a - b)
}

const all = ({ to }: Change): number[] => Array.from({ length: to.partitions }, (_, unit) => unit)

test('what every unit has of its own, every new unit gets once', () => {
  fc.assert(
    fc.property(change, userId, (grown, user) => {
      expect(heirs({ kind: 'deletion', userId: user, sourceId: 'space' }, grown)).toEqual(all(grown))
      expect(heirs({ kind: 'sync', spaceId: 'space', audienceId: 'a' }, grown)).toEqual(all(grown))
    }),
  )
})

test('the floor of a deleted user comes to the user’s own unit from where the states of the user are', () => {
  fc.assert(
    fc.property(change, userId, (grown, user) => {
      const key = encodeStateKey({ kind: 'deletion', userId: user, sourceId: 'space' })
      const home = partitionOf(user, grown.from.partitions)
      expect(unitsOfState(key, home, grown)).toContain(partitionOf(user, grown.to.partitions))
    }),
  )
})

test('a property goes to the unit of its user, and what nobody can read stays where it is', () => {
  fc.assert(
    fc.property(change, userId, (grown, user) => {
      const key = encodeStateKey({ kind: 'property', userId: user, spaceId: 'space', property: 'p' })
      expect(unitsOfState(key, 0, grown)).toEqual([partitionOf(user, grown.to.partitions)])
      expect(unitsOfState(Buffer.from('{'), 0, grown)).toEqual([0])
      expect(unitsOfState(null, 0, grown)).toEqual([0])
    }),
  )
})

const state: RetryState = {
  sourceId: 'space',
  destinationId: 'crm',
  messageId: 'm',
  kind: 'identify',
  nextRung: 0,
  attempts: 0,
  firstSeenMs: 1,
  expiresAtMs: 0,
  failedHooks: [],
  notBeforeMs: new Map(),
  lastOutcome: '',
  origin: { topic: 't', partition: 0, offset: 0 },
}

test('a retry that tells a property goes to its user’s unit, another one by its key', () => {
  fc.assert(
    fc.property(change, userId, userId, (grown, user, key) => {
      const property = { userId: user, spaceId: 'space', property: 'p', since: '1.1.0.0' }
      const own = { key: Buffer.from(key), headers: encodeRetryState({ ...state, property }) }
      expect(unitOfWaiting(own, 0, grown)).toBe(partitionOf(user, grown.to.partitions))
      const other = { key: Buffer.from(key), headers: encodeRetryState(state) }
      expect(unitOfWaiting(other, 0, grown)).toBe(
        partitionOf(Buffer.from(key).toString(), grown.to.partitions),
      )
      expect(unitOfWaiting({ ...other, key: null }, 3, grown)).toBe(3)
      expect(unitOfWaiting({ key: null, headers: {} }, 3, grown)).toBe(3)
    }),
  )
})
