import avro from 'avsc'
import * as fc from 'fast-check'
import { Compile } from 'typebox/compile'
import { describe, expect, test } from 'vitest'
import { audienceChangeSchema } from '../../../src/message/audience-change.ts'
import {
  deletionAvro,
  eventAvro,
  membershipAvro,
  syncAvro,
  traitAvro,
} from '../../../src/message/avro-schemas.ts'
import { deletionCheck } from '../../../src/message/deletion.ts'
import { enter } from '../../../src/message/enter.ts'
import { createAvroReader } from '../../../src/schema-registry/avro.ts'
import { parseAvroSchema } from '../../../src/schema-registry/avro-schema.ts'

/** Encodes a value as a JavaScript producer does, without logical types. Decodes it as the worker does. */
function through(schema: object, value: object): Buffer {
  const written = typeOf(schema).toBuffer(value)
  const read = createAvroReader(parseAvroSchema(schema))(written)
  if (!read.ok) throw new Error(read.detail)
  return read.value
}

function typeOf(schema: object): avro.Type {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- avsc checks it
  return avro.Type.forSchema(schema as avro.Type)
}

const audienceChangeCheck = Compile(audienceChangeSchema)

const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
/** A timestamp as Avro's long, or as text. */
const timestamp = fc.oneof(
  fc.integer({ min: 0, max: 253_402_300_799_999 }),
  fc
    .date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true })
    .map((date) => date.toISOString()),
)
const scalar = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  text,
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => (Object.is(number, -0) ? 0 : number)),
)
const collections = <T>(items: fc.Arbitrary<T>) => [
  fc.array(items, { maxLength: 3 }),
  fc.dictionary(fc.string(), items, { maxKeys: 3, noNullPrototype: true }),
]
const inner = fc.oneof(scalar, ...collections(scalar))
const anyValue = fc.oneof(scalar, ...collections(inner))
const openObject = fc.dictionary(fc.string(), anyValue, { maxKeys: 4, noNullPrototype: true })

describe('what the Avro schema encodes is valid:', () => {
  const ids = fc.oneof(
    fc.record({ userId: text }),
    fc.record({ anonymousId: text }),
    fc.record({ userId: text, anonymousId: text }),
  )
  const common = fc.record({ messageId: text, timestamp, context: openObject }, { requiredKeys: [] })
  const kinds: Record<string, fc.Arbitrary<object>> = {
    identify: fc.record({ traits: openObject }, { requiredKeys: [] }),
    track: fc.record({ event: text, properties: openObject }, { requiredKeys: ['event'] }),
    page: fc.record({ name: text, category: text, properties: openObject }, { requiredKeys: [] }),
    screen: fc.record({ name: text, properties: openObject }, { requiredKeys: [] }),
    group: fc.record({ groupId: text, traits: openObject }, { requiredKeys: ['groupId'] }),
    alias: fc.record({ userId: text, previousId: text }),
    delete: fc.record({ userId: text }),
  }

  test.each(Object.keys(kinds))('an event of the kind %s', (type) => {
    const own = kinds[type] ?? fc.constant({})
    fc.assert(
      fc.property(ids, common, own, (who, shared, fields) => {
        const sent = { type, ...who, ...shared, ...fields }
        const value = through(eventAvro, sent)
        const entered = enter(value, { topic: 'events', partition: 0, offset: 0, timestampMs: 0 })
        if (!entered.ok) throw new Error(entered.detail)
        // The value has everything that was sent, and nothing else.
        const { timestamp: when, ...rest } = sent
        expect(JSON.parse(value.toString())).toEqual({
          ...rest,
          ...(when !== undefined && { timestamp: new Date(when).toISOString() }),
        })
      }),
      { numRuns: 150 },
    )
  })

  const audience = fc.record(
    { audienceId: text, audienceName: text, audienceKey: text },
    { requiredKeys: ['audienceId', 'audienceName'] },
  )
  const changes: [string, object, fc.Arbitrary<object>][] = [
    ['membership', membershipAvro, fc.record({ userId: text, member: fc.boolean(), changedAt: timestamp })],
    [
      'sync',
      syncAvro,
      fc.record({
        syncId: text,
        snapshotAt: timestamp,
        part: fc.integer({ min: 1 }),
        parts: fc.integer({ min: 1 }),
        userIds: fc.array(text),
      }),
    ],
  ]
  test.each(changes)('an audience change of the kind %s', (type, schema, own) => {
    fc.assert(
      fc.property(audience, own, (of, fields) => {
        const value: unknown = JSON.parse(through(schema, { type, ...of, ...fields }).toString())
        expect(audienceChangeCheck.Errors(value)).toEqual([])
      }),
      { numRuns: 1_000 },
    )
  })

  test('a computed trait of any value, null too', () => {
    const trait = fc.record(
      { traitId: text, traitName: text, traitKey: text, userId: text, value: anyValue, changedAt: timestamp },
      { requiredKeys: ['traitId', 'traitName', 'userId', 'value', 'changedAt'] },
    )
    fc.assert(
      fc.property(trait, (fields) => {
        const read: { value: unknown } = JSON.parse(
          through(traitAvro, { type: 'trait', ...fields }).toString(),
        )
        expect(audienceChangeCheck.Errors(read)).toEqual([])
        expect(read.value).toEqual(fields.value)
      }),
      { numRuns: 1_000 },
    )
  })

  test('a deletion', () => {
    const deletion = fc.record({
      requestId: fc.stringMatching(/^[!-~]{1,80}$/),
      userId: text,
      sources: fc.uniqueArray(text, { minLength: 1 }),
      requestedAt: timestamp,
    })
    fc.assert(
      fc.property(deletion, (sent) => {
        expect(deletionCheck.Errors(JSON.parse(through(deletionAvro, sent).toString()))).toEqual([])
      }),
      { numRuns: 1_000 },
    )
  })
})

test('a producer of another language can take each schema: no union has two branches that a value could be mistaken for', () => {
  for (const schema of [eventAvro, membershipAvro, traitAvro, syncAvro, deletionAvro]) {
    expect(() =>
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- avsc checks it
      avro.Type.forSchema(schema as avro.Type, { wrapUnions: 'never' }),
    ).not.toThrow()
  }
})
