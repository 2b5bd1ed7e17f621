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

  test('of a name is compiled anew, so that its next version can have the same name', () => {
    expect(read({ $id: 'user.json', ...user }, '{"userId":"u"}')).toMatchObject({ ok: true })
    expect(read({ $id: 'user.json', type: 'string' }, '"u"')).toMatchObject({ ok: true })
  })
})
