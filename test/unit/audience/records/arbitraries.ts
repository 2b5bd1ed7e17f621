import * as fc from 'fast-check'
import {
  laterOf,
  type Version,
  type PropertyState,
  type PropertyStateKey,
} from '../../../../src/audience/records/version.ts'

/**
 * Ids that a producer may send. Some have half a surrogate pair, or the characters that separate the parts of
 * our keys.
 */
export const id = fc.oneof(
  fc.string({ minLength: 1, maxLength: 12 }),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 6 }),
  fc
    .array(
      fc.constantFrom(
        'a',
        '\u0000',
        '\u0001',
        '\u007f',
        '\u0080',
        '\ud7ff',
        '\ud800',
        '\udfff',
        '\uffff',
        ';',
        ':',
      ),
      {
        minLength: 1,
        maxLength: 6,
      },
    )
    .map((units) => units.join('')),
  fc.constantFrom('__proto__', 'constructor', '0', '-1'),
)

const moment = fc.oneof(
  fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 }),
  fc.integer({ min: 0, max: 3 }),
)

export const version: fc.Arbitrary<Version> = fc.record({
  atMs: moment,
  isNative: fc.boolean(),
  partition: fc.nat({ max: 3 }),
  offset: fc.oneof(fc.nat({ max: 3 }), fc.nat({ max: Number.MAX_SAFE_INTEGER })),
})

/** Texts of canonical JSON. */
const jsonText = fc
  .oneof(fc.jsonValue(), fc.constantFrom({ ['__proto__']: 1 }, 'a;b', 1e21, -0, null))
  .map((value) => JSON.stringify(JSON.parse(JSON.stringify(value))))

export const stateKey: fc.Arbitrary<PropertyStateKey> = fc.record({
  kind: fc.constant('property' as const),
  userId: id,
  spaceId: id,
  property: id,
})

export const state: fc.Arbitrary<PropertyState> = fc
  .tuple(fc.boolean(), id, fc.oneof(id, fc.constant('')), jsonText, fc.boolean(), version, version)
  .map(([isAudience, of, name, json, member, a, b]) => {
    const later = laterOf(a, b)
    return {
      kind: isAudience ? ('audience' as const) : ('trait' as const),
      id: of,
      name,
      value: isAudience ? String(member) : json,
      version: later,
      since: later === a ? b : a,
    }
  })
