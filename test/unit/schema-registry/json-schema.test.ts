import { describe, expect, test } from 'vitest'
import {
  compileJsonSchema,
  createJsonReader,
  type ReferencedSchema,
} from '../../../src/schema-registry/json-schema.ts'

function read(
  schema: object | boolean,
  value: string | Buffer,
  referenced: readonly ReferencedSchema[] = [],
): ReturnType<ReturnType<typeof createJsonReader>> {
  return createJsonReader(compileJsonSchema(schema, referenced))(Buffer.from(value))
}

const user = { type: 'object', required: ['userId'], properties: { userId: { type: 'string' } } }

test('a value that fits its schema is what was sent, to the byte', () => {
  const sent = ' {"userId":"u", "__proto__": 1.0, "n": 12345678901234567890}\n'
  expect(read(user, sent)).toEqual({ ok: true, value: Buffer.from(sent) })
})

test('a value that does not fit is refused with what the schema says, and nothing of the value', () => {
  expect(
    read({ ...user, additionalProperties: { type: 'number' } }, '{"userId":"u","secret key":"secret value"}'),
  ).toEqual({
    ok: false,
    reason: 'schema_mismatch',
    detail: '#/additionalProperties/type: must be number',
  })
})

test.each([
  ['not_json', '{"userId":'],
  ['not_utf8', Buffer.from('7b22757365724964223a22ff227d', 'hex')],
])('%s', (reason, value) => {
  expect(read(user, value)).toMatchObject({ ok: false, reason })
})

test('a key that every object inherits is not there', () => {
  expect(read({ type: 'object', required: ['constructor'] }, '{}')).toMatchObject({ ok: false })
})

test('what is nested deeper than the stack is refused', () => {
  const schema = { type: 'array', items: { $ref: '#' } }
  const deep = '['.repeat(200_000) + ']'.repeat(200_000)
  expect(read(schema, deep)).toMatchObject({ ok: false, reason: 'schema_mismatch' })
})

test('what is refused is told in a few words, however long the names of the schema are', () => {
  const name = 'n'.repeat(1_000_000)
  const result = read({ properties: { [name]: { type: 'string' } } }, JSON.stringify({ [name]: 1 }))
  expect(result).toMatchObject({ ok: false, reason: 'schema_mismatch' })
  expect(JSON.stringify(result).length).toBeLessThan(1_000)
})

describe('items that have to be unique', () => {
  const list = { type: 'array', uniqueItems: true }

  test.each([
    ['[1,1.0]', false],
    ['[0,-0]', false],
    ['[1,"1",true,null,"null",[],{}]', true],
    ['[{"a":1,"b":[2]},{"b":[2],"a":1}]', false],
    ['[{"a":{"x":1,"y":2}},{"a":{"y":2,"x":1}}]', false],
    ['[{"a":1},{"a":1,"b":null}]', true],
    ['[{"__proto__":1},{"__proto__":2}]', true],
    ['[{"__proto__":1},{"__proto__":1}]', false],
    ['[[1,2],[2,1]]', true],
    ['[["a,b"],["a","b"]]', true],
  ])('%s: %s', (value, isUnique) => {
    for (const draft of ['draft-07/schema#', 'draft/2019-09/schema', 'draft/2020-12/schema']) {
      const result = read({ $schema: `http://json-schema.org/${draft}`, ...list }, value)
      expect(result.ok).toBe(isUnique)
    }
  })

  test('may be anything where they need not be', () => {
    expect(read({ ...list, uniqueItems: false }, '[1,1]')).toMatchObject({ ok: true })
  })

  test('are refused with what the schema says', () => {
    expect(read(list, '[1,1]')).toMatchObject({ detail: '#/uniqueItems: must NOT have duplicate items' })
  })
})

describe('a number that has to be a multiple', () => {
  test.each([
    [0.01, '19.99', true],
    [0.01, '-123456789.01', true],
    [0.01, '19.999', false],
    [0.1, '0.3', true],
    [1e-7, '3e-7', true],
    [3, '7e20', false],
    [7, '0', true],
    [2, '1e308', true],
    [2.5, '1e-320', false],
    [0.01, '1e999', false],
  ])('of %s: %s', (divisor, value, isMultiple) => {
    expect(read({ multipleOf: divisor }, value).ok).toBe(isMultiple)
  })

  test('is refused with what the schema says', () => {
    expect(read({ multipleOf: 0.5 }, '0.7')).toMatchObject({
      detail: '#/multipleOf: must be multiple of 0.5',
    })
  })
})

describe('a schema', () => {
  const tuple = { type: 'array' }
  test.each([
    ['of no draft', { ...tuple, items: [{ type: 'string' }] }],
    [
      'of draft 6',
      { $schema: 'http://json-schema.org/draft-06/schema#', ...tuple, items: [{ type: 'string' }] },
    ],
    [
      'of draft 7',
      { $schema: 'http://json-schema.org/draft-07/schema#', ...tuple, items: [{ type: 'string' }] },
    ],
    [
      'of 2019-09',
      { $schema: 'https://json-schema.org/draft/2019-09/schema', ...tuple, items: [{ type: 'string' }] },
    ],
    [
      'of 2020-12',
      {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        ...tuple,
        prefixItems: [{ type: 'string' }],
      },
    ],
  ])('%s is taken by the rules of its draft', (_draft, schema) => {
    expect(read(schema, '["a",1]')).toMatchObject({ ok: true })
    expect(read(schema, '[1]')).toMatchObject({ ok: false })
  })

  test('with keywords and formats that nobody knows is taken', () => {
    const schema = { type: 'string', format: 'date-time', 'connect.type': 'string', javaType: 'String' }
    expect(read(schema, '"x"')).toMatchObject({ ok: true })
  })

  test('may have keywords of OpenAPI and of draft 4, which say nothing', () => {
    const schema = {
      id: 'http://schemas.example/order',
      type: 'object',
      definitions: { name: { nullable: 'yes', type: 'string' } },
      properties: {
        nullable: { nullable: true, $ref: '#/definitions/name' },
        plan: { nullable: false, enum: [{ nullable: true }, null] },
        id: { nullable: false, type: ['string', 'null'] },
        some: { items: [{ nullable: true }], anyOf: [{ nullable: true, const: [1] }] },
      },
      additionalProperties: false,
    }
    expect(read(schema, '{"nullable":"x","plan":{"nullable":true},"id":null,"some":[1]}').ok).toBe(true)
    for (const value of ['{"nullable":1}', '{"plan":{}}', '{"id":1}', '{"some":[2]}', '{"other":1}'])
      expect([value, read(schema, value).ok]).toEqual([value, false])
  })

  test('of draft 4 has limits that may be excluded, and ids by another name', () => {
    const schema = {
      $schema: 'http://json-schema.org/draft-04/schema#',
      id: 'http://schemas.example/order.json',
      definitions: { name: { id: '#name', type: 'string' } },
      properties: {
        id: { minimum: 0, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: true },
        share: { minimum: 0, exclusiveMinimum: false },
        first: { $ref: '#name' },
        last: { $ref: 'http://schemas.example/order.json#/definitions/name' },
        inner: { $ref: 'order.json' },
      },
    }
    for (const value of ['{"id":1,"share":0}', '{"first":"a","last":"b","inner":{"id":8}}'])
      expect([value, read(schema, value).ok]).toEqual([value, true])
    for (const value of [
      '{"id":0}',
      '{"id":9}',
      '{"share":-1}',
      '{"first":1}',
      '{"last":1}',
      '{"inner":{"id":0}}',
    ])
      expect([value, read(schema, value).ok]).toEqual([value, false])
  })

  test.each([
    { $id: 7 },
    { $id: null },
    { $id: '' },
    { $id: 'my order schema' },
    { $id: 'urn:jsonschema:com:acme:web-shop:Order' },
    { $id: '/schemas/order' },
    { $schema: 7 },
    { $schema: 'https://schemas.example/our-own-draft' },
    { $schema: 'http://json-schema.org/schema#' },
    { required: true },
    { required: false },
    { format: 7 },
    { title: 7, description: {}, $comment: 1, readOnly: 'yes' },
    {
      discriminator: { propertyName: 'a' },
      example: { $ref: 'gone' },
      'connect.type': 'int8',
      javaType: 'X',
    },
  ])('with %j is taken, and the rest of it counts', (odd) => {
    const schema = { ...odd, type: 'object', properties: { a: { ...odd, $id: undefined, type: 'string' } } }
    expect([read(schema, '{"a":"x"}').ok, read(schema, '{"a":1}').ok]).toEqual([true, false])
  })

  test('may be a boolean', () => {
    expect([read(true, '1').ok, read(false, '1').ok]).toEqual([true, false])
    const referred = (schema: boolean) => read({ $ref: 'any.json' }, '1', [{ name: 'any.json', schema }]).ok
    expect([referred(true), referred(false)]).toEqual([true, false])
    expect(() => compileJsonSchema([])).toThrow('neither an object nor a boolean')
  })

  test('may escape more in a pattern than JavaScript allows with the flag u', () => {
    const schema = { type: 'string', pattern: String.raw`^[\w\.\_]+\@\w+$` }
    expect(read(schema, '"a_b@c"')).toMatchObject({ ok: true })
    expect(read(schema, '"a_b"')).toMatchObject({ ok: false })
    const named = { type: 'object', patternProperties: { [String.raw`^\@`]: { type: 'integer' } } }
    expect([read(named, '{"@a":1}').ok, read(named, '{"@a":"x"}').ok]).toEqual([true, false])
  })

  test.each(['(', String.raw`^\p{L}+\@$`])('with the pattern %s can not be used', (pattern) => {
    expect(() => read({ type: 'string', pattern }, '"a"')).toThrow('Invalid regular expression')
  })

  test('may have a pattern with any character, and with properties of characters', () => {
    const schema = { type: 'string', pattern: String.raw`^\p{L}.$` }
    expect(read(schema, '"é👩"')).toMatchObject({ ok: true })
  })

  test('refers to others by their ids', () => {
    const schema = { type: 'object', properties: { user: { $ref: 'user.json' } } }
    const referenced = [{ name: 'a user', schema: { $id: 'user.json', ...user } }]
    expect(read(schema, '{"user":{"userId":"u"}}', referenced)).toMatchObject({ ok: true })
    expect(read(schema, '{"user":{}}', referenced)).toMatchObject({ ok: false })
  })

  test.each([
    ['a path', './user.json', {}, {}],
    ['a name with a space', 'my user.json', {}, {}],
    ['a name beside a relative id', 'user.json', { $id: 'of/order.json' }, {}],
    [
      'a name, where both have the same id',
      'user.json',
      { $id: 'http://x/s.json' },
      { $id: 'http://x/s.json' },
    ],
  ])('refers to another by %s', (_how, name, own, other) => {
    const schema = { ...own, type: 'object', properties: { user: { $ref: name } } }
    const referenced = [{ name, schema: { ...user, ...other } }]
    expect(read(schema, '{"user":{"userId":"u"}}', referenced)).toMatchObject({ ok: true })
    expect(read(schema, '{"user":{}}', referenced)).toMatchObject({ ok: false })
  })

  test('whose validation would be a promise can not be used: nothing would be refused', () => {
    expect(() => read({ $async: true, type: 'string' }, '1')).toThrow('$async')
    expect(() => read({ $async: 'yes', type: 'string' }, '1')).toThrow('$async')
    const referenced = [{ name: 'promised.json', schema: { $async: true, type: 'string' } }]
    expect(() => read({ $ref: 'promised.json' }, '1', referenced)).toThrow('async')
    expect(() => read({ items: { $async: true, type: 'string' } }, '[1]')).toThrow('async')
  })

  test('of a name is compiled anew, so that its next version can have the same name', () => {
    expect(read({ $id: 'user.json', ...user }, '{"userId":"u"}')).toMatchObject({ ok: true })
    expect(read({ $id: 'user.json', type: 'string' }, '"u"')).toMatchObject({ ok: true })
  })
})
