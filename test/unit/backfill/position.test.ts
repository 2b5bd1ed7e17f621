import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type BackfillScope, decodePosition, encodePosition } from '../../../src/backfill/position.ts'

const scope: BackfillScope = {
  prefix: 'sluice.',
  partitions: 12,
  spaceId: 'personas',
  destinationId: 'crm',
  audienceId: null,
  property: null,
  withLeft: false,
}
const position = { unit: 3, end: 1_000, bucket: 5, offset: -1, sent: 42, marksUpTo: 7 }

describe('the position of a backfill', () => {
  test('is read as it was written', () => {
    fc.assert(
      fc.property(
        fc.record({
          unit: fc.nat(),
          end: fc.maxSafeNat(),
          bucket: fc.nat(),
          offset: fc.oneof(fc.constant(-1), fc.maxSafeNat()),
          sent: fc.maxSafeNat(),
          marksUpTo: fc.integer({ min: -1 }),
        }),
        fc.record({ spaceId: fc.string(), destinationId: fc.string(), property: fc.option(fc.string()) }),
        (at, names) => {
          const own = { ...scope, ...names }
          expect(decodePosition(encodePosition(own, at), own)).toEqual({ ok: true, position: at })
        },
      ),
      { numRuns: 1_000 },
    )
  })

  test.each([
    ['another destination', { destinationId: 'other' }],
    ['another audience', { audienceId: 'aud_1' }],
    ['other topics', { prefix: 'test.' }],
    ['another number of partitions', { partitions: 13 }],
    ['who left, too', { withLeft: true }],
  ])('is not taken for %s', (_what, other) => {
    expect(decodePosition(encodePosition(scope, position), { ...scope, ...other })).toEqual({
      ok: false,
      fault: 'other',
    })
  })

  test('is not taken for topics with other ids, and is taken where an id is not known, as in files of earlier versions', () => {
    const ids = { membershipsId: 'AAAAAAAAAAAAAAAAAAAAAA', backfillsId: 'BBBBBBBBBBBBBBBBBBBBBB' }
    const text = encodePosition({ ...scope, ...ids }, position)
    for (const other of [
      { membershipsId: 'CCCCCCCCCCCCCCCCCCCCCC' },
      { backfillsId: 'CCCCCCCCCCCCCCCCCCCCCC' },
    ]) {
      const present = { ...scope, ...ids, ...other }
      expect(decodePosition(text, present)).toEqual({ ok: false, fault: 'other_log' })
      expect(decodePosition(text, { ...present, destinationId: 'other' })).toEqual({
        ok: false,
        fault: 'other',
      })
    }
    const known = { ok: true, position }
    const unknown = { membershipsId: undefined, backfillsId: undefined }
    expect(decodePosition(text, { ...scope, ...ids })).toEqual(known)
    expect(decodePosition(text, { ...scope, ...unknown })).toEqual(known)
    expect(decodePosition(encodePosition(scope, position), { ...scope, ...ids })).toEqual(known)
  })

  test('is none in a file that holds something else', () => {
    const whole = encodePosition(scope, position)
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.nat({ max: whole.length - 3 }).map((at) => whole.slice(0, at)),
        ),
        (text) => {
          expect(decodePosition(text, scope)).toEqual({ ok: false, fault: 'unreadable' })
        },
      ),
      { numRuns: 1_000 },
    )
    for (const broken of [{ unit: -1 }, { offset: -2 }, { end: 1.5 }, { sent: '1' }, { marksUpTo: -2 }]) {
      const text = JSON.stringify({ version: 1, ...scope, ...position, ...broken })
      expect(decodePosition(text, scope)).toEqual({ ok: false, fault: 'unreadable' })
    }
  })
})
