import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readAsWritten, remember } from '../../../../src/audience/records/record-reader.ts'
import { decodeState, encodeState, encodeStateKey } from '../../../../src/audience/records/state-record.ts'
import { state, stateKey, version } from './arbitraries.ts'

const runs = { numRuns: 2_000 }
const space = Buffer.from(' ')
const ofAudience = state.filter(({ kind }) => kind === 'audience')

/**
 * Returns what the parser reads from a record. Adds a space behind the key and the value. Sluice never writes
 * such spaces, so the fast reader, which has no parser, doesn't accept them.
 */
function parsed(key: Buffer, value: Buffer) {
  return decodeState(Buffer.concat([key, space]), Buffer.concat([value, space]))
}

type Edit = [how: string, where: number, byte: number]

function edited(bytes: Buffer, [how, where, byte]: Edit): Buffer {
  const at = where % (bytes.length + 1)
  const behind = bytes.subarray(how === 'insert' ? at : at + 1)
  return Buffer.concat([bytes.subarray(0, at), Buffer.from(how === 'remove' ? [] : [byte]), behind])
}

describe('records that are spelled as they are written here', () => {
  test('are read without a parser once one like them was parsed', () => {
    fc.assert(
      fc.property(stateKey, ofAudience, version, fc.boolean(), (of, held, at, isSilent) => {
        remember(of, held)
        const plain = { ...of, userId: '0ü' }
        const next = { ...held, value: 'false', version: at, since: at }
        expect(readAsWritten(encodeStateKey(plain), encodeState(next, isSilent))).toEqual({
          stateKey: plain,
          state: next,
          isSilent,
        })
      }),
      runs,
    )
  })

  test('are left to the parser where nothing like them was seen, and where they are of a trait', () => {
    const at = { atMs: 1, isNative: true, partition: 0, offset: 0 }
    const of = { kind: 'property', userId: 'ann', spaceId: 'never', property: 'seen' } as const
    const held = { kind: 'trait', id: 't', name: 'T', value: 'true', version: at, since: at } as const
    remember(of, held)
    expect(readAsWritten(encodeStateKey(of), encodeState(held, true))).toBeUndefined()
    const other = { ...held, kind: 'audience' } as const
    remember({ ...of, property: 'other' }, other)
    expect(readAsWritten(encodeStateKey(of), encodeState(other, true))).toBeUndefined()
    remember(of, other)
    expect(readAsWritten(encodeStateKey(of), encodeState(other, true))?.state).toEqual(other)
  })

  test('say what the parser says, whatever becomes of one of their bytes, or is added', () => {
    const place = fc.nat({ max: 10_000 })
    const byte = fc.oneof(fc.constantFrom(...Buffer.from('"\\,:{}[]-+.eE0123456789')), fc.nat({ max: 255 }))
    const edit = fc.tuple(fc.constantFrom('set', 'insert', 'remove'), place, byte)
    fc.assert(
      fc.property(
        stateKey,
        ofAudience,
        fc.boolean(),
        edit,
        fc.boolean(),
        (of, held, isSilent, one, isOfKey) => {
          remember(of, held)
          const [key, value] = [encodeStateKey(of), encodeState(held, isSilent)]
          const [k, v] = isOfKey ? [edited(key, one), value] : [key, edited(value, one)]
          expect(decodeState(k, v)).toEqual(parsed(k, v))
        },
      ),
      runs,
    )
  })
})
