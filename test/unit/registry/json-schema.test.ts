import { describe, expect, test } from 'vitest'
import { createJsonReader, JsonSchemaCompiler } from '../../../src/registry/json-schema.ts'

function read(schema: object, value: string | Buffer, referenced: readonly object[] = []) {
  const compiler = new JsonSchemaCompiler()
  for (const each of referenced) compiler.addSchema(each)
  return createJsonReader(compiler.compile(schema))(Buffer.from(value))
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

  test('are compared in a time that goes with their number', () => {
    const items = Array.from({ length: 50_000 }, (_, index) => ({ index }))
    const startedMs = performance.now()
    expect(read(list, JSON.stringify(items))).toMatchObject({ ok: true })
    // A comparison of each item with each other one would take 100 s.
    expect(performance.now() - startedMs).toBeLessThan(5_000)
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

  test('refers to others by their ids', () => {
    const schema = { type: 'object', properties: { user: { $ref: 'user.json' } } }
    const referenced = [{ $id: 'user.json', ...user }]
    expect(read(schema, '{"user":{"userId":"u"}}', referenced)).toMatchObject({ ok: true })
    expect(read(schema, '{"user":{}}', referenced)).toMatchObject({ ok: false })
  })

  test('whose validation would be a promise can not be used: nothing would be refused', () => {
    expect(() => read({ $async: true, type: 'string' }, '1')).toThrow('$async')
    expect(() => read({ $async: 'yes', type: 'string' }, '1')).toThrow('$async')
    const referenced = [{ $id: 'promised.json', $async: true, type: 'string' }]
    expect(() => read({ $ref: 'promised.json' }, '1', referenced)).toThrow('async')
    expect(() => read({ items: { $async: true, type: 'string' } }, '[1]')).toThrow('async')
  })

  test('of a name is compiled anew, so that its next version can have the same name', () => {
    expect(read({ $id: 'user.json', ...user }, '{"userId":"u"}')).toMatchObject({ ok: true })
    expect(read({ $id: 'user.json', type: 'string' }, '"u"')).toMatchObject({ ok: true })
  })
})
