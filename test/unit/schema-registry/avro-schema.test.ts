import avro from 'avsc'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createAvroReader } from '../../../src/schema-registry/avro.ts'
import { parseAvroSchema } from '../../../src/schema-registry/avro-schema.ts'
import { arbitraryAvro } from './arbitrary-avro.ts'

/** Tests of schemas that break Avro's rules. Other schemas are tested with their values (`avro.test.ts`). */

type Schema = string | object

function read(schema: Schema, bytes: Buffer): unknown {
  const result = createAvroReader(parseAvroSchema(schema))(bytes)
  return result.ok ? JSON.parse(result.value.toString()) : result.reason
}

function fixed(name: string): Schema {
  return { type: 'fixed', name, size: 1 }
}

function record(names: object, ...types: [string, Schema][]): object {
  return { type: 'record', ...names, fields: types.map(([name, type]) => ({ name, type })) }
}

/** Types with bytes that Java's Avro (1.11) has written, and what they stand for. */
describe('a name is only looked up, so that it may be anything that a producer of another language takes:', () => {
  const int = 'cda187cf08'
  const number = -1_156_638_823
  const nullSpaced = record({ name: 'B', namespace: '' }, ['x', fixed('F')])
  const cases: [what: string, schema: Schema, hex: string, json: unknown][] = [
    [
      'a namespace with a hyphen, and references by the simple and the full name',
      record(
        { name: 'Order', namespace: 'com.acme.web-shop' },
        ['a', 'int'],
        ['b', { type: 'enum', name: 'Kind', symbols: ['ONE', 'ZWÖLF'] }],
        ['c', 'com.acme.web-shop.Kind'],
        ['d', 'Kind'],
      ),
      `${int}020200`,
      { a: number, b: 'ZWÖLF', c: 'ZWÖLF', d: 'ONE' },
    ],
    [
      'digits at the start, in a record that holds itself',
      record({ name: 'R', namespace: '1.2nd.3' }, ['a', 'int'], ['n', ['null', 'R']]),
      `${int}02cbaeb3830800`,
      { a: number, n: { a: -1_077_308_326, n: null } },
    ],
    [
      'the name of a class in a class',
      record({ name: 'Inner', namespace: 'com.acme.Outer$' }, ['a', 'int']),
      int,
      { a: number },
    ],
    ['dots alone', record({ name: 'Inner', namespace: 'com..acme.' }, ['a', 'int']), int, { a: number }],
    ['a space', record({ name: 'Inner', namespace: 'my shop' }, ['a', 'int']), int, { a: number }],
    [
      'letters of any language',
      record({ name: 'Größe', namespace: '日本' }, ['größe', 'int']),
      int,
      { größe: number },
    ],
    [
      'a full name, beside which the namespace counts for nothing',
      record({ name: 'x-y.A', namespace: 'other' }, ['a', fixed('F')], ['b', 'x-y.F']),
      '9918',
      { a: 'mQ==', b: 'GA==' },
    ],
    [
      'the null namespace within another',
      record({ name: 'A', namespace: 'n' }, ['a', nullSpaced], ['c', 'B'], ['f', 'F']),
      '99185a',
      { a: { x: 'mQ==' }, c: { x: 'GA==' }, f: 'Wg==' },
    ],
    [
      'the null namespace as a dot',
      record({ name: 'A', namespace: 'n' }, ['a', record({ name: '.B' }, ['x', fixed('F')])], ['f', '.F']),
      '9918',
      { a: { x: 'mQ==' }, f: 'GA==' },
    ],
    [
      'the name of a kind of type',
      record({ name: 'R', namespace: 'a-b' }, ['a', fixed('array')], ['b', 'array'], ['c', 'a-b.array']),
      '99185a',
      { a: 'mQ==', b: 'GA==', c: 'Wg==' },
    ],
    [
      'a reference as an object',
      record({ name: 'A' }, ['a', { type: 'fixed', name: 'F-2', size: 2 }], ['b', { type: 'F-2' }]),
      '99171834',
      { a: 'mRc=', b: 'GDQ=' },
    ],
    ['an error', { ...record({ name: 'E-x.A' }, ['a', 'int']), type: 'error' }, int, { a: number }],
    [
      'a fixed of no bytes',
      record({ name: 'A' }, ['a', { type: 'fixed', name: 'F', size: 0 }]),
      '',
      { a: '' },
    ],
  ]
  test.each(cases)('%s', (_what, schema, hex, json) => {
    expect(read(schema, Buffer.from(hex, 'hex'))).toEqual(json)
  })

  const other: [what: string, schema: Schema, hex: string, json: unknown][] = [
    [
      'hyphens in all names',
      record({ name: 'web-order' }, ['first-name', 'int']),
      int,
      { 'first-name': number },
    ],
    ['no name', record({}, ['', 'int']), int, { '': number }],
    [
      'names that would be code',
      record({ name: 'a;process.exit(1)' }, ["'];process.exit(1)//", 'int']),
      int,
      { "'];process.exit(1)//": number },
    ],
    [
      'odd symbols',
      { type: 'enum', name: '1', symbols: ['', '1st', 'a-b', '__proto__', '1st'] },
      '06',
      '__proto__',
    ],
    [
      'a type that is defined later',
      record({ name: 'A' }, ['a', 'F'], ['b', fixed('F')]),
      '9918',
      { a: 'mQ==', b: 'GA==' },
    ],
    [
      'a type that is defined twice, in the same way',
      record({ name: 'A' }, ['a', fixed('F')], ['b', fixed('F')], ['c', 'F']),
      '99185a',
      { a: 'mQ==', b: 'GA==', c: 'Wg==' },
    ],
    [
      'a type in a type',
      { type: { type: 'array', items: { type: { type: 'int' } } } },
      '02' + int + '00',
      [number],
    ],
    ['a union in a union', ['null', ['null', 'int']], '0202' + int, number],
  ]
  test.each(other)('%s', (_what, schema, hex, json) => {
    expect(read(schema, Buffer.from(hex, 'hex'))).toEqual(json)
  })

  test('whatever avsc encodes is read the same if all its types are renamed', () => {
    fc.assert(
      fc.property(arbitraryAvro, fc.string(), ({ schema, value, json }, odd) => {
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- avsc checks it
        const type = avro.Type.forSchema(schema as avro.Type, { wrapUnions: 'always' })
        const name = JSON.stringify(`${odd.replaceAll('.', '-')}-T`).slice(1, -1)
        const text = JSON.stringify(schema).replaceAll(/"T(\d+)"/g, (_all, index) => `"${name}${index}"`)
        const renamed: Schema = {
          type: 'record',
          name: 'web-shop.All',
          fields: [{ name: 'it', type: JSON.parse(text) }],
        }
        expect(read(renamed, type.toBuffer(value))).toEqual({ it: json })
      }),
      { numRuns: 500 },
    )
  })
})

describe('what a reader does not need may be anything:', () => {
  const junk = [null, 7, '', 'x-y', '1.2', [], ['a b', 7], {}, { type: 'gone' }]

  test.each(junk.map((odd) => [odd]))('aliases, documentation, order and default that are %j', (odd) => {
    const noise = { aliases: odd, doc: odd, order: odd, 'connect.name': odd, javaClass: odd }
    const schema = {
      ...noise,
      type: 'record',
      name: 'A',
      version: odd,
      fields: [
        { ...noise, name: 'a', type: { ...noise, type: 'enum', name: 'E', symbols: ['S'], default: odd } },
        { ...noise, name: 'b', type: { ...noise, type: 'array', items: 'int', default: odd }, default: 'x' },
        { ...noise, name: 'c', type: { ...noise, type: 'long', precision: odd, scale: odd }, default: odd },
      ],
    }
    expect(read(schema, Buffer.from('000202000e', 'hex'))).toEqual({ a: 'S', b: [1], c: 7 })
  })

  const bases: [base: Schema, hex: string, json: unknown][] = [
    ['int', '02', 1],
    ['string', '0261', 'a'],
    ['bytes', '0261', 'YQ=='],
    [{ type: 'array', items: 'int' }, '020200', [1]],
    [{ type: 'F' }, '61', 'YQ=='],
  ]
  test.each(bases)('a logical type on %j', (base, hex, json) => {
    const own = typeof base === 'string' ? { type: base } : base
    for (const logicalType of [...junk, 'decimal', 'uuid', 'time-micros', 'timestamp-nanos', 'duration']) {
      // A decimal with this scale is none.
      const a: Schema = { ...own, logicalType, scale: -1 }
      const schema = record({ name: 'R' }, ['f', fixed('F')], ['a', a])
      expect(read(schema, Buffer.from(`02${hex}`, 'hex'))).toEqual({ f: 'Ag==', a: json })
    }
  })
})

describe('a schema can not be used', () => {
  const cases: [why: string, schema: unknown, says: string][] = [
    ['that names a type which is not there', { type: 'array', items: 'x-y.Gone' }, 'unknown type "x-y.Gone"'],
    ['that is null', null, 'null is no type'],
    ['whose record has no fields', { type: 'record', name: 'A' }, 'no list of fields'],
    ['whose field has no name', { type: 'record', fields: [{ type: 'int' }] }, 'field without a name'],
    ['whose field has no type', { type: 'record', fields: [{ name: 'a' }] }, 'undefined is no type'],
    [
      'that has a field twice, of which JSON could hold only one',
      record({ name: 'R' }, ['a', 'int'], ['a', 'int']),
      'two fields "a"',
    ],
    ['whose symbols are numbers', { type: 'enum', name: 'E', symbols: [1] }, 'no list of symbols'],
    ['whose size is negative', { type: 'fixed', name: 'F', size: -1 }, 'no size'],
    [
      'that refers to a type of which it has two',
      [{ type: 'fixed', name: 'F', size: 1 }, { type: 'fixed', name: 'F', size: 2 }, 'F'],
      'defines "F" in two ways',
    ],
  ]
  test.each(cases)('%s', (_why, schema, says) => {
    expect(() => parseAvroSchema(schema)).toThrow(says)
  })
})
