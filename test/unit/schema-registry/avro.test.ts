import avro from 'avsc'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createAvroReader } from '../../../src/schema-registry/avro.ts'
import { type AvroType, parseAvroSchema } from '../../../src/schema-registry/avro-schema.ts'
import { arbitraryAvro } from './arbitrary-avro.ts'

/** A schema as JSON. */
type Schema = string | object

function typeOf(schema: Schema): AvroType {
  return parseAvroSchema(structuredClone(schema))
}

/**
 * Encodes a value as a producer does that doesn't know our types. The value of a union is `{ branch: value
 * }`.
 */
function encode(schema: Schema, value: unknown): Buffer {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- avsc checks it
  return avro.Type.forSchema(schema as avro.Type, { wrapUnions: 'always' }).toBuffer(value)
}

function read(schema: Schema, bytes: Buffer): unknown {
  const result = createAvroReader(typeOf(schema))(bytes)
  return result.ok ? JSON.parse(result.value.toString()) : result.reason
}

function through(schema: Schema, value: unknown): unknown {
  return read(schema, encode(schema, value))
}

function recordOf(...fields: { name: string; type: Schema; default?: unknown }[]): Schema {
  return { type: 'record', name: 'R', fields }
}

const optionalText: Schema = ['null', 'string']

describe('a null', () => {
  test('of a field whose default is null is left out', () => {
    const schema = recordOf({ name: 'a', type: optionalText, default: null }, { name: 'b', type: 'int' })
    expect(through(schema, { a: null, b: 1 })).toEqual({ b: 1 })
  })

  test('of a field without a default stays', () => {
    expect(through(recordOf({ name: 'a', type: optionalText }), { a: null })).toEqual({ a: null })
  })

  test('of a field with another default stays', () => {
    const schema = recordOf({ name: 'a', type: ['string', 'null'], default: 'x' })
    expect(through(schema, { a: null })).toEqual({ a: null })
  })

  test('of a field whose default is null is left out, also if null is not the first branch', () => {
    const schema = recordOf({ name: 'a', type: ['string', 'null'], default: null })
    expect(read(schema, Buffer.from([2]))).toEqual({})
    expect(read(schema, Buffer.from([0, 2, 0x61]))).toEqual({ a: 'a' })
  })

  test('of a map or an array stays', () => {
    const schema = recordOf(
      { name: 'map', type: { type: 'map', values: optionalText } },
      { name: 'array', type: { type: 'array', items: optionalText } },
    )
    expect(through(schema, { map: { plan: null }, array: [null] })).toEqual({
      map: { plan: null },
      array: [null],
    })
  })
})

describe('a long', () => {
  const max = 2n ** 63n - 1n
  test.each([
    0n,
    -1n,
    2n ** 27n,
    -(2n ** 27n) - 1n,
    2n ** 48n,
    -(2n ** 48n) - 1n,
    2n ** 53n - 1n,
    1n - 2n ** 53n,
  ])('of %s, which a number holds, is a number', (value) => {
    expect(read('long', zigzag(value))).toBe(Number(value))
  })

  test.each([2n ** 53n, -(2n ** 53n), 1_234_567_890_123_456_789n, max, -max - 1n])(
    'of %s, which no number holds, is text',
    (value) => {
      expect(read('long', zigzag(value))).toBe(String(value))
    },
  )

  test('is read to the bit', () => {
    fc.assert(
      fc.property(fc.bigInt(-max - 1n, max), (value) => {
        const expected = Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
        expect(read('long', zigzag(value))).toBe(expected)
      }),
      { numRuns: 2_000 },
    )
  })

  test('of more than 64 bits is refused', () => {
    expect(read('long', Buffer.from('ffffffffffffffffff02', 'hex'))).toBe('schema_mismatch')
    expect(read('long', Buffer.from('ffffffffffffffffffff01', 'hex'))).toBe('schema_mismatch')
  })
})

function zigzag(value: bigint): Buffer {
  let rest = BigInt.asUintN(64, (value << 1n) ^ (value >> 63n))
  const bytes: number[] = []
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  return Buffer.from([...bytes, Number(rest)])
}

describe('a value of the kind', () => {
  const cases: [kind: string, schema: Schema, value: unknown, json: unknown][] = [
    ['union of records', ['int', recordOf({ name: 'a', type: 'int' })], { R: { a: 1 } }, { a: 1 }],
    ['union of numbers', ['null', 'long', 'double'], { long: 7 }, 7],
    ['bytes', 'bytes', Buffer.from([0, 255, 16]), 'AP8Q'],
    ['fixed', { type: 'fixed', name: 'F', size: 2 }, Buffer.from([1, 2]), 'AQI='],
    ['enum', { type: 'enum', name: 'E', symbols: ['A', 'B'] }, 'B', 'B'],
    ['float', 'float', 0.5, 0.5],
    ['text beyond ASCII', 'string', 'a😀\u2028\ufffd', 'a😀\u2028\ufffd'],
    ['date', logical('int', 'date'), Date.parse('2020-02-29') / 86_400_000, '2020-02-29'],
    ['date before 1970', logical('int', 'date'), -1, '1969-12-31'],
    ['time-millis', logical('int', 'time-millis'), 3_723_004, '01:02:03.004'],
    ['time-micros', logical('long', 'time-micros'), 3_723_004_005, '01:02:03.004005'],
    ['timestamp-millis', logical('long', 'timestamp-millis'), 1_257_894_000_123, '2009-11-10T23:00:00.123Z'],
    ['timestamp-millis before 1970', logical('long', 'timestamp-millis'), -1, '1969-12-31T23:59:59.999Z'],
    [
      'timestamp-micros',
      logical('long', 'timestamp-micros'),
      1_257_894_000_123_456,
      '2009-11-10T23:00:00.123456Z',
    ],
    [
      'whole timestamp-micros',
      logical('long', 'timestamp-micros'),
      1_257_894_000_123_000,
      '2009-11-10T23:00:00.123Z',
    ],
    ['timestamp-micros before 1970', logical('long', 'timestamp-micros'), -1, '1969-12-31T23:59:59.999999Z'],
    ['local-timestamp-millis', logical('long', 'local-timestamp-millis'), 0, '1970-01-01T00:00:00.000'],
    ['uuid', logical('string', 'uuid'), '5c2f6d9e-1', '5c2f6d9e-1'],
    ['decimal', decimalOf(2), Buffer.from('04d2', 'hex'), 12.34],
    ['negative decimal', decimalOf(2), Buffer.from('ff', 'hex'), -0.01],
    ['empty decimal', decimalOf(2), Buffer.alloc(0), 0],
    ['decimal of no scale', decimalOf(0), Buffer.from('04d2', 'hex'), 1_234],
    [
      'decimal that no number holds',
      decimalOf(2),
      Buffer.from('7fffffffffffffff', 'hex'),
      '92233720368547758.07',
    ],
    ['decimal of a scale without sense', decimalOf(-1), Buffer.from([1]), 'AQ=='],
    ['logical type that goes with another', logical('string', 'timestamp-millis'), 'x', 'x'],
    ['logical type that nobody knows', logical('int', 'shoe-size'), 44, 44],
  ]
  test.each(cases)('%s', (_kind, schema, value, json) => {
    expect(through(schema, value)).toEqual(json)
  })

  test('timestamp-nanos', () => {
    const bytes = zigzag(1_257_894_000_123_456_789n)
    expect(read(logical('long', 'timestamp-nanos'), bytes)).toBe('2009-11-10T23:00:00.123456789Z')
  })

  test('uuid as bytes', () => {
    const schema = { type: 'fixed', name: 'U', size: 16, logicalType: 'uuid' }
    expect(read(schema, Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex'))).toBe(
      '00010203-0405-0607-0809-0a0b0c0d0e0f',
    )
  })

  test('decimal as fixed', () => {
    const schema = { type: 'fixed', name: 'D', size: 3, logicalType: 'decimal', precision: 6, scale: 1 }
    expect(read(schema, Buffer.from('00000f', 'hex'))).toBe(1.5)
  })

  test('record that holds itself', () => {
    const schema = recordOf({ name: 'v', type: 'int' }, { name: 'next', type: ['null', 'R'], default: null })
    expect(through(schema, { v: 1, next: { R: { v: 2, next: null } } })).toEqual({ v: 1, next: { v: 2 } })
  })
})

function logical(type: string, logicalType: string): Schema {
  return { type, logicalType }
}

function decimalOf(scale: number): Schema {
  return { type: 'bytes', logicalType: 'decimal', precision: 20, scale }
}

describe('names that objects have already', () => {
  test.each(['__proto__', 'constructor', 'toString', 'toJSON'])(
    '%s is a key of a map like any other',
    (key) => {
      const map = Object.defineProperty({}, key, { value: { int: 1 }, enumerable: true })
      const bytes = encode({ type: 'map', values: ['int'] }, map)
      const result = createAvroReader(typeOf({ type: 'map', values: ['int'] }))(bytes)
      expect(result).toEqual({ ok: true, value: Buffer.from(`{"${key}":1}`) })
    },
  )

  test('__proto__ is a field of a record like any other', () => {
    const result = createAvroReader(typeOf(recordOf({ name: '__proto__', type: 'int' })))(Buffer.from([2]))
    expect(result).toEqual({ ok: true, value: Buffer.from('{"__proto__":1}') })
  })
})

describe('a value is refused', () => {
  const cases: [why: string, schema: Schema, hex: string, reason: string][] = [
    ['that ends too soon', 'string', '06616', 'schema_mismatch'],
    ['that is empty', 'int', '', 'schema_mismatch'],
    ['that goes on', 'int', '0200', 'schema_mismatch'],
    ['whose text has a negative length', 'string', '01', 'schema_mismatch'],
    ['whose text is longer than all there is', 'string', 'feffffff0f', 'schema_mismatch'],
    ['whose length is a bigint', 'bytes', 'feffffffffffffffff01', 'schema_mismatch'],
    ['whose boolean is neither', 'boolean', '02', 'schema_mismatch'],
    ['whose int has 33 bits', 'int', 'feffffff1f', 'schema_mismatch'],
    ['whose union has no such branch', ['null', 'int'], '0402', 'schema_mismatch'],
    ['whose union has a negative branch', ['null', 'int'], '0102', 'schema_mismatch'],
    ['whose enum has no such symbol', { type: 'enum', name: 'E', symbols: ['A'] }, '02', 'schema_mismatch'],
    ['whose text is no UTF-8', 'string', '02ff', 'not_utf8'],
    ['whose key is no UTF-8', { type: 'map', values: 'null' }, '0202c000', 'not_utf8'],
    ['that is NaN', 'double', '000000000000f87f', 'number_out_of_range'],
    ['that is infinite', 'float', '0000807f', 'number_out_of_range'],
    [
      'whose moment is no date',
      logical('long', 'timestamp-millis'),
      'feffffffffffffffff01',
      'number_out_of_range',
    ],
    [
      'whose time of day is too late',
      logical('int', 'time-millis'),
      zigzag(86_400_000n).toString('hex'),
      'number_out_of_range',
    ],
    ['whose decimal is huge', decimalOf(0), `8402${'01'.repeat(130)}`, 'number_out_of_range'],
  ]
  test.each(cases)('%s', (_why, schema, hex, reason) => {
    expect(read(schema, Buffer.from(hex, 'hex'))).toBe(reason)
  })

  test.each<Schema>([
    { type: 'array', items: 'null' },
    { type: 'array', items: 'int' },
    { type: 'map', values: 'null' },
    { type: 'array', items: { type: 'array', items: 'null' } },
  ])('that claims items without end, as %j', (schema) => {
    expect(read(schema, Buffer.from('feffffffffffff0f', 'hex'))).toBe('schema_mismatch')
    // These bytes make the same claim in a block that also gives its size in bytes.
    expect(read(schema, Buffer.from('fdffffffffffff0f00', 'hex'))).toBe('schema_mismatch')
  })

  test('that claims some items without bytes in each of many arrays', () => {
    const schema: Schema = { type: 'array', items: { type: 'array', items: 'null' } }
    const inner = Buffer.from('d00f00', 'hex')
    const many = Buffer.concat([
      zigzag(1_000n),
      ...Array.from({ length: 1_000 }, () => inner),
      Buffer.from([0]),
    ])
    expect(read(schema, many)).toBe('schema_mismatch')
  })

  test('that stands for records without end, each of two', () => {
    expect(read(nested(20, ['a', 'b']), Buffer.alloc(0))).toBe('schema_mismatch')
  })

  test('that is nested deeper than the stack', () => {
    const schema = recordOf({ name: 'next', type: ['null', 'R'], default: null })
    expect(read(schema, Buffer.alloc(1_000_000, 2))).toBe('schema_mismatch')
  })

  test('of a type that never ends', () => {
    expect(read(recordOf({ name: 'a', type: 'R' }), Buffer.alloc(10))).toBe('schema_mismatch')
  })
})

describe('a schema', () => {
  test('may have any default that Avro allows', () => {
    const fields: [Schema, unknown][] = [
      [optionalText, 'of the second branch'],
      // Java's Long.MAX_VALUE, which JSON.parse can't read exactly.
      ['long', 2 ** 63],
      [['null', { type: 'long', logicalType: 'timestamp-millis' }], 0],
      [{ type: 'enum', name: 'E', symbols: ['S', 'T'] }, 'S'],
      [{ type: 'record', name: 'In', fields: [{ name: 'a', type: optionalText, default: null }] }, {}],
    ]
    const schema = recordOf(
      ...fields.map(([type, value], index) => ({ name: `f${index}`, type, default: value })),
    )
    expect(read(schema, Buffer.from([0, 2, 0, 2, 0]))).toEqual({ f0: null, f1: 1, f2: null, f3: 'T', f4: {} })
  })
})

test('records within records take no bytes of their own', () => {
  const items = Array.from({ length: 10_000 }, () => ({ a: { a: { a: { a: { a: { a: {} } } } } } }))
  const bytes = Buffer.concat([zigzag(10_000n), Buffer.alloc(10_000, 2), Buffer.from([0])])
  expect(read({ type: 'array', items: ['null', nested(6, ['a'])] }, bytes)).toEqual(items)
})

/** Returns a schema of records in records, this many levels deep. The innermost record has no fields. */
function nested(levels: number, names: readonly string[]): Schema {
  let schema: Schema = { type: 'record', name: 'R0', fields: [] }
  for (let level = 1; level <= levels; level++) {
    const [first, ...others] = names
    schema = {
      type: 'record',
      name: `R${level}`,
      fields: [{ name: first, type: schema }, ...others.map((name) => ({ name, type: `R${level - 1}` }))],
    }
  }
  return schema
}

test('whatever avsc encodes comes out as the JSON that it stands for', () => {
  fc.assert(
    fc.property(arbitraryAvro, ({ schema, value, json }) => {
      expect(through(schema, value)).toEqual(json)
    }),
    { numRuns: 2_000 },
  )
})

test('whatever the bytes are, they are read or refused', () => {
  const bytes = fc.uint8Array({ maxLength: 60 })
  const verdicts = new Set<string>()
  fc.assert(
    fc.property(arbitraryAvro, bytes, fc.nat(), ({ schema, value }, noise, at) => {
      const type = typeOf(schema)
      const sound = encode(schema, value)
      const cut = at % (sound.length + 1)
      const spoilt = Buffer.concat([sound.subarray(0, cut), noise, sound.subarray(cut + noise.length)])
      const result = createAvroReader(type)(spoilt)
      verdicts.add(result.ok ? 'ok' : result.reason)
      if (result.ok) JSON.parse(result.value.toString())
    }),
    { numRuns: 3_000 },
  )
  expect(verdicts).toContain('ok')
  expect(verdicts).toContain('schema_mismatch')
})
