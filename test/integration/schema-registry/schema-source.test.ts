import { once } from 'node:events'
import { createServer } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { createSchemaSource, type SchemaAnswer } from '../../../src/schema-registry/schema-source.ts'
import { createAuthority } from '../../support/certificates.ts'
import { answer, neverAnswer, type Receiver, type Script, startReceiver } from '../../support/receiver.ts'

/**
 * Tests of registries that misbehave. Each of their answers leads to a verdict within the timeout, and no
 * answer harms the process.
 */

const timeoutMs = 30_000
/** The deadline where a test waits for it, in milliseconds. */
const shortMs = 500
const stops: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

async function serve(
  scripts: Script | Record<string, Script>,
  options: Parameters<typeof startReceiver>[1] = {},
): Promise<Receiver> {
  const receiver = await startReceiver(scripts, options)
  stops.push(() => receiver.stop())
  return receiver
}

const noLogin = { authorization: undefined, ca: undefined }

type Asking = { authorization?: string; ca?: readonly string[]; timeoutMs?: number }

function ask(
  url: string,
  { timeoutMs: deadlineMs = timeoutMs, ...settings }: Asking = {},
  schemaId = 7,
): Promise<SchemaAnswer> {
  const login = () => ({ ...noLogin, ...settings })
  const source = createSchemaSource({ url, login, timeoutMs: deadlineMs })
  return source.ask(schemaId, new AbortController().signal)
}

function jsonAnswer(body: unknown, status = 200): Script {
  return answer(status, { 'content-type': 'application/vnd.schemaregistry.v1+json' }, JSON.stringify(body))
}

const notFound = jsonAnswer({ error_code: 40_403, message: 'Schema not found' }, 404)
const record = { type: 'record', name: 'R', namespace: 'x', fields: [{ name: 'a', type: 'int' }] }
/** Returns a record with one field, which is a `Unit`. */
const holding = (name: string): object => ({
  type: 'record',
  name,
  namespace: 'x',
  fields: [{ name: 'unit', type: 'x.Unit' }],
})
const refer = (name: string, version: number): object => ({
  references: [{ name: `x.${name}`, subject: name, version }],
})
const schema = (of: object, rest: object = {}): Script => jsonAnswer({ schema: JSON.stringify(of), ...rest })

test('an Avro schema is found, and reads values', async () => {
  const { origin } = await serve({ '/schemas/ids/7': schema(record) })
  const found = await ask(origin)
  expect(found.kind === 'found' && found.read(Buffer.from([2]))).toEqual({
    ok: true,
    value: Buffer.from('{"a":1}'),
  })
})

test('a registry may be below a path', async () => {
  const { origin } = await serve({ '/apis/ccompat/v7/schemas/ids/7': schema(record) })
  expect(await ask(`${origin}/apis/ccompat/v7`)).toMatchObject({ kind: 'found' })
  expect(await ask(`${origin}/apis/ccompat/v7/`)).toMatchObject({ kind: 'found' })
})

test('a JSON Schema is found, and reads values', async () => {
  const { origin } = await serve(schema({ type: 'string' }, { schemaType: 'JSON' }))
  const found = await ask(origin)
  expect(
    found.kind === 'found' && [found.read(Buffer.from('"x"')).ok, found.read(Buffer.from('1')).ok],
  ).toEqual([true, false])
})

describe('a schema that refers to another', () => {
  const referred = '/subjects/money/versions/2'
  const references = [{ name: 'x.Money', subject: 'money', version: 2 }]
  const order = {
    type: 'record',
    name: 'Order',
    namespace: 'x',
    fields: [{ name: 'total', type: 'x.Money' }],
  }
  const money = { type: 'record', name: 'Money', namespace: 'x', fields: [{ name: 'cents', type: 'long' }] }

  test('of Avro is read with it', async () => {
    const { origin } = await serve({
      '/schemas/ids/7': schema(order, { references }),
      [referred]: schema(money),
    })
    const found = await ask(origin)
    expect(found.kind === 'found' && found.read(Buffer.from([10]))).toEqual({
      ok: true,
      value: Buffer.from('{"total":{"cents":5}}'),
    })
  })

  test('of Avro is read with it, whatever the names and the subject are', async () => {
    const name = 'com.acme.web-shop.1.Money$'
    const { origin } = await serve({
      '/schemas/ids/7': schema(
        { ...order, namespace: 'com.acme.web-shop', fields: [{ name: 'total', type: name }] },
        { references: [{ name, subject: ':.shop:a/b-value', version: 2 }] },
      ),
      '/subjects/%3A.shop%3Aa%2Fb-value/versions/2': schema({ ...money, name, namespace: undefined }),
    })
    const found = await ask(origin)
    expect(found.kind === 'found' && found.read(Buffer.from([10]))).toEqual({
      ok: true,
      value: Buffer.from('{"total":{"cents":5}}'),
    })
  })

  test('and that to others without end is refused', async () => {
    let asked = 0
    const { origin } = await serve((...given) => {
      const more = [{ name: `x.T${asked++}`, subject: `T${asked}`, version: 1 }]
      return schema(record, { references: more })(...given)
    })
    expect(await ask(origin)).toEqual({ kind: 'unusable', why: 'it refers to over 1000 schemas' })
  })

  test('of Avro is read with the first version of it, if others refer to other versions', async () => {
    const unit = { type: 'record', name: 'Unit', namespace: 'x', fields: [{ name: 'a', type: 'int' }] }
    const later = { ...unit, fields: [...unit.fields, { name: 'b', type: 'int', default: 1 }] }
    const { origin } = await serve({
      '/schemas/ids/7': schema(
        { ...holding('Both'), fields: ['One', 'Other'].map((name) => ({ name, type: name })) },
        {
          references: ['One', 'Other'].map((name) => ({ name: `x.${name}`, subject: name, version: 1 })),
        },
      ),
      '/subjects/One/versions/1': schema(holding('One'), refer('Unit', 1)),
      '/subjects/Other/versions/1': schema(holding('Other'), refer('Unit', 2)),
      '/subjects/Unit/versions/1': schema(unit),
      '/subjects/Unit/versions/2': schema(later),
    })
    const found = await ask(origin)
    expect(found.kind === 'found' && found.read(Buffer.from([2, 4]))).toEqual({
      ok: true,
      value: Buffer.from('{"One":{"unit":{"a":1}},"Other":{"unit":{"a":2}}}'),
    })
  })

  test('of JSON Schema is read with it', async () => {
    const { origin } = await serve({
      '/schemas/ids/7': schema({ $ref: 'money.json' }, { schemaType: 'JSON', references }),
      [referred]: schema({ $id: 'money.json', type: 'integer' }, { schemaType: 'JSON' }),
    })
    const found = await ask(origin)
    expect(
      found.kind === 'found' && [found.read(Buffer.from('5')).ok, found.read(Buffer.from('"x"')).ok],
    ).toEqual([true, false])
  })

  test.each([
    ['neither has an id', {}, {}],
    ['only the first has one', { $id: 'http://schemas.example/order.json' }, {}],
    ['only the other has one', {}, { $id: 'http://schemas.example/a-money.json' }],
    [
      'both have one',
      { $id: 'http://schemas.example/order.json' },
      { $id: 'http://other.example/a-money.json' },
    ],
    ['it has the id of the other', { $id: 'http://schemas.example/order.json' }, { $id: 'money.json' }],
  ])('of JSON Schema is read with it by its name, when %s', async (_which, own, other) => {
    const { origin } = await serve({
      '/schemas/ids/7': schema(
        { ...own, type: 'object', properties: { total: { $ref: 'money.json' } } },
        { schemaType: 'JSON', references: [{ name: 'money.json', subject: 'money', version: 2 }] },
      ),
      '/subjects/money/versions/2': schema(
        { ...other, type: 'object', properties: { unit: { $ref: 'unit.json' }, cents: { type: 'integer' } } },
        { schemaType: 'JSON', references: [{ name: 'unit.json', subject: 'unit', version: 1 }] },
      ),
      '/subjects/unit/versions/1': schema(
        { $id: 'http://other.example/unit.json', enum: ['€'] },
        { schemaType: 'JSON' },
      ),
    })
    const found = await ask(origin)
    const fits = (value: object): boolean =>
      found.kind === 'found' && found.read(Buffer.from(JSON.stringify(value))).ok
    expect(found.kind === 'unusable' && found.why).toBe(false)
    expect([fits({ total: { cents: 5, unit: '€' } }), fits({ total: { cents: 'x' } })]).toEqual([true, false])
    expect(fits({ total: { unit: 'x' } })).toBe(false)
  })

  test('which is not there can not be used', async () => {
    const { origin } = await serve({
      '/schemas/ids/7': schema(order, { references }),
      [referred]: jsonAnswer({ error_code: 40_401 }, 404),
    })
    expect(await ask(origin)).toEqual({ kind: 'unusable', why: expect.stringContaining('refers to') })
  })

  test('which can not be had now is asked for again', async () => {
    const { origin } = await serve({
      '/schemas/ids/7': schema(order, { references }),
      [referred]: answer(503),
    })
    expect(await ask(origin)).toMatchObject({ kind: 'failed' })
  })
})

test('that it has no such schema is what the registry says, with a code of its own', async () => {
  const { origin } = await serve(notFound)
  expect(await ask(origin)).toEqual({ kind: 'unknown' })
})

describe('a schema can not be used', () => {
  const cases: [why: string, script: Script, says: string][] = [
    [
      'that is Protobuf',
      jsonAnswer({ schemaType: 'PROTOBUF', schema: 'syntax = "proto3"; message A { string a = 1; }' }),
      'PROTOBUF',
    ],
    ['that is of a kind nobody knows', jsonAnswer({ schemaType: 'XSD', schema: '<a/>' }), 'XSD'],
    ['that is no JSON', jsonAnswer({ schema: '{' }), 'JSON'],
    [
      'that the registry itself can not read',
      jsonAnswer({ error_code: 0, message: 'Failed to discover artifact type from content.' }, 400),
      'the registry answers 400: Failed to discover',
    ],
    [
      'that refers to a schema in no way of a registry',
      schema(record, { references: [{ name: 'x.Money', subject: 'money' }] }),
      'lacks a name, a subject or a version',
    ],
    ['that is no Avro', schema({ type: 'thing' }), 'unknown type'],
    ['that is no JSON Schema', schema({ type: 'thing' }, { schemaType: 'JSON' }), 'type must be'],
    ['that refers to nothing', schema({ $ref: 'gone.json' }, { schemaType: 'JSON' }), 'resolve'],
  ]
  test.each(cases)('%s', async (_why, script, says) => {
    const { origin } = await serve(script)
    expect(await ask(origin)).toEqual({ kind: 'unusable', why: expect.stringContaining(says) })
  })
})

const cutOff: Script = (_request, response) => {
  response.writeHead(200, { 'content-length': '1000' }).write('{"schema":')
  setImmediate(() => response.destroy())
}
const drip: Script = (_request, response) => {
  response.writeHead(200).write('{')
  const timer = setInterval(() => response.write(' '), 50)
  response.once('close', () => clearInterval(timer))
}
const endless: Script = (_request, response) => {
  const chunk = Buffer.alloc(1024 ** 2, ' ')
  const pour = (): void => {
    while (!response.destroyed && response.write(chunk));
  }
  response.on('drain', pour)
  pour()
}

describe('the registry has to be asked again', () => {
  const cases: [when: string, script: Script, says: string][] = [
    ['when it answers 500', answer(500), '500'],
    ['when it answers 500 with null', jsonAnswer(null, 500), '500'],
    ['when it answers 503 with nothing', answer(503), '503'],
    ['when it answers 429', answer(429), '429'],
    ['when another server says 400', jsonAnswer({ message: 'Bad request' }, 400), '400'],
    ['when it wants another login', answer(401), 'registry.password'],
    ['when it forbids', answer(403), 'registry.password'],
    ['when it is moved', answer(302, { location: 'http://127.0.0.1:9/' }), 'registry.url'],
    ['when the path is not there', answer(404), 'registry.url'],
    [
      'when another server says not found',
      jsonAnswer({ error_code: 404, message: 'HTTP 404 Not Found' }, 404),
      'registry.url',
    ],
    ['when it is a page for people', answer(200, { 'content-type': 'text/html' }, '<html>'), 'registry.url'],
    ['when it answers null', jsonAnswer(null), 'registry.url'],
    ['when it never answers', neverAnswer, 'within 500 ms'],
    ['when its answer drips', drip, 'within 500 ms'],
    ['when its answer is cut off', cutOff, 'aborted'],
    ['when its answer has no end', endless, '8388608 bytes'],
  ]
  test.each(cases)('%s', async (_when, script, says) => {
    const { origin } = await serve(script)
    const startedMs = performance.now()
    const asking = says.startsWith('within') ? { timeoutMs: shortMs } : {}
    expect(await ask(origin, asking)).toEqual({ kind: 'failed', why: expect.stringContaining(says) })
    expect(performance.now() - startedMs).toBeLessThan(shortMs + 10_000)
  })

  test('after the wait that it asks for', async () => {
    const { origin } = await serve(answer(429, { 'retry-after': '7' }))
    expect(await ask(origin)).toEqual({ kind: 'failed', why: 'it answers 429', afterMs: 7_000 })
  })

  test('when nobody listens', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    server.close()
    const port = typeof address === 'object' ? address?.port : 0
    expect(await ask(`http://127.0.0.1:${port}`)).toEqual({
      kind: 'failed',
      why: expect.stringContaining('ECONNREFUSED'),
    })
  })

  test('when its certificate is not trusted, and no more once that is', async () => {
    const authority = createAuthority('ours')
    const { origin } = await serve(schema(record), { identity: authority.issue({ names: ['127.0.0.1'] }) })
    expect(await ask(origin)).toMatchObject({ kind: 'failed' })
    expect(await ask(origin, { ca: [authority.cert] })).toMatchObject({ kind: 'found' })
  })
})

test('the login is sent', async () => {
  const receiver = await serve(schema(record))
  await ask(receiver.origin, { authorization: 'Basic dTpw' })
  expect(receiver.requests.map(({ headers }) => headers.authorization)).toEqual(['Basic dTpw'])
})

test('a lookup ends when it is not needed any more', async () => {
  const { origin } = await serve(neverAnswer)
  const stopping = new AbortController()
  const source = createSchemaSource({
    url: origin,
    login: () => noLogin,
    timeoutMs: 60_000,
  })
  const asked = source.ask(7, stopping.signal)
  stopping.abort()
  expect(await asked).toMatchObject({ kind: 'failed' })
})

test('two JSON Schemas of one name can be had, one after the other', async () => {
  const { origin } = await serve({
    '/schemas/ids/1': schema({ $id: 'user.json', type: 'string' }, { schemaType: 'JSON' }),
    '/schemas/ids/2': schema({ $id: 'user.json', type: 'integer' }, { schemaType: 'JSON' }),
  })
  const source = createSchemaSource({ url: origin, login: () => noLogin, timeoutMs })
  const { signal } = new AbortController()
  expect([await source.ask(1, signal), await source.ask(2, signal)]).toMatchObject([
    { kind: 'found' },
    { kind: 'found' },
  ])
})
