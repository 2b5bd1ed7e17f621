import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { SchemaRegistry, SchemaType } from '@kafkajs/confluent-schema-registry'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { produce, type SeenRecord } from '../../support/kafka.ts'
import { answer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { type RunningRegistry, startSchemaRegistry } from '../../support/schema-registry.ts'
import { until } from '../../support/until.ts'
import { type Deployment, deploy } from '../delivery/deployment.ts'

/**
 * Tests with producers that use a schema registry. They have kafkajs, the library of the registry and a real
 * registry. A real worker delivers to a real server.
 */

const downloadMs = 10 * 60_000

let registry: RunningRegistry
let client: SchemaRegistry
let server: Receiver
let sluice: Deployment

/** The number of dead letters that the tests have already checked. */
let letters = 0

beforeAll(async () => {
  registry = await startSchemaRegistry()
  // The library has no validator for the draft of our JSON Schemas, so it gets one here.
  const ajvInstance = new Ajv2020({ strict: false })
  client = new SchemaRegistry({ host: registry.url }, { [SchemaType.JSON]: { ajvInstance } })
  server = await startReceiver({ '/hook': answer(200) })
  const destinations = [
    { id: 'shop', sources: ['web', 'personas'], hooks: [{ url: `${server.origin}/hook` }] },
  ]
  sluice = await deploy({
    destinations,
    otherSources: [{ id: 'personas', kind: 'audiences' }],
    variables: { SLUICE_REGISTRY_URL: registry.url, SLUICE_REGISTRY_TIMEOUT: '1s' },
  })
}, downloadMs)

afterAll(async () => {
  await sluice?.stop()
  await server?.stop()
  await registry?.stop()
})

function avroSchema(name: string): string {
  return readFileSync(join(resolve(import.meta.dirname, '../../../schemas'), `${name}.avsc`), 'utf8')
}

/** Registers an Avro schema under a name that no other test uses. Returns the id of the schema. */
async function registerAvro(name: string, schema = avroSchema('event')): Promise<number> {
  // The registry gives an identical schema the id that it already has. So each schema gets a different `doc`.
  const own: object = { ...JSON.parse(schema), doc: name }
  const { id } = await client.register(
    { type: SchemaType.AVRO, schema: JSON.stringify(own) },
    { subject: name },
  )
  return id
}

/** Registers a schema by the registry's own API, as clients of other languages do. Returns its id. */
async function registerRaw(subject: string, body: object): Promise<number> {
  const response = await fetch(`${registry.url}/subjects/${encodeURIComponent(subject)}/versions`, {
    method: 'POST',
    headers: { 'content-type': 'application/vnd.schemaregistry.v1+json' },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  expect([response.status, text]).toEqual([200, expect.stringContaining('"id"')])
  const { id }: { id: number } = JSON.parse(text)
  return id
}

function framed(schemaId: number, payload: readonly number[]): Buffer {
  const head = Buffer.alloc(5)
  head.writeInt32BE(schemaId, 1)
  return Buffer.concat([head, Buffer.from(payload)])
}

/** Returns the delivered messages, in order of arrival. */
function delivered(): Record<string, unknown>[] {
  return server.requests.map(({ body }) => JSON.parse(body.toString()))
}

function deliveredIds(): unknown[] {
  return delivered().map(({ messageId }) => messageId)
}

function arrived(...messageIds: string[]): Promise<unknown> {
  return until(`${messageIds.join(', ')} arrived`, () =>
    messageIds.every((id) => deliveredIds().includes(id)),
  )
}

/** Returns the offset of the original record of a dead letter. */
function offsetOf({ headers }: SeenRecord): number {
  return Number(headers['origin']?.split('/').at(-1))
}

/** Waits for the next `count` dead letters, and returns them in the order of their original records. */
async function nextLetters(count: number): Promise<SeenRecord[]> {
  const all = await sluice.read('dead-letters', letters + count)
  const next = all.toSorted((a, b) => a.timestamp - b.timestamp).slice(letters)
  letters += count
  return next.toSorted((a, b) => offsetOf(a) - offsetOf(b))
}

/** Returns the level and the text of each line about schemas in the log of the worker. */
function said(): string[][] {
  return sluice.worker.log.filter(({ msg }) => /schema/.test(msg)).map(({ level, msg }) => [level, msg])
}

const track = (messageId: string): object => ({ type: 'track', userId: 'u', event: 'Bought', messageId })

test('an Avro message is delivered as the JSON that it stands for', async () => {
  const id = await registerAvro('delivered-avro')
  const value = await client.encode(id, {
    ...track('avro-1'),
    timestamp: 1_257_894_000_123,
    properties: { total: 30, tags: ['a', null], plan: null, nested: { deep: { far: 1 } } },
    context: { ip: '10.0.0.1' },
    integrations: { All: true },
  })
  await sluice.send('web', [{ key: 'u', value }])
  await arrived('avro-1')
  expect(delivered()).toEqual([
    {
      version: 1,
      type: 'track',
      userId: 'u',
      event: 'Bought',
      messageId: 'avro-1',
      timestamp: '2009-11-10T23:00:00.123Z',
      properties: { total: 30, tags: ['a', null], plan: null, nested: { deep: { far: 1 } } },
      context: { ip: '10.0.0.1' },
      integrations: { All: true },
    },
  ])
})

test('audience changes and deletions in Avro are read as well', async () => {
  const membership = await registerAvro('membership', avroSchema('audience-membership'))
  const deletion = await registerAvro('deletion', avroSchema('deletion'))
  const change = {
    type: 'membership',
    audienceId: 'a1',
    audienceName: 'Big spenders',
    audienceKey: null,
    userId: 'u1',
    member: true,
  }
  const value = await client.encode(membership, { ...change, changedAt: Date.now() })
  await produce(`${sluice.prefix}audience-changes`, [
    { key: 'u1', value, headers: { 'source-id': 'personas' } },
  ])
  await until('the Identify arrived', () =>
    delivered().some(({ traits }) => isDeepStrictEqual(traits, { big_spenders: true })),
  )

  const request = { requestId: 'r1', userId: 'u2', sources: ['web'], requestedAt: new Date().toISOString() }
  await produce(`${sluice.prefix}deletions`, [{ key: 'u2', value: await client.encode(deletion, request) }])
  await until('the delete arrived', () => delivered().some(({ userId }) => userId === 'u2'))
  expect(delivered().find(({ userId }) => userId === 'u2')).toMatchObject({ type: 'delete' })
})

test('an Avro message whose schema and its reference have names of another language is delivered', async () => {
  // The library of this test refuses such names, as avsc does, so the schemas are registered without it.
  const money = {
    type: 'record',
    name: 'Geld',
    namespace: 'de.läden',
    fields: [{ name: 'größe', type: 'long' }],
  }
  const order = {
    type: 'record',
    name: 'Bestellung',
    namespace: 'de.käufe',
    fields: [
      ...['type', 'userId', 'event', 'messageId'].map((name) => ({ name, type: 'string' })),
      { name: 'properties', type: { type: 'map', values: 'de.läden.Geld' } },
    ],
  }
  await registerRaw('läden/geld', { schema: JSON.stringify(money) })
  const references = [{ name: 'de.läden.Geld', subject: 'läden/geld', version: 1 }]
  const id = await registerRaw('läden/bestellung', { schema: JSON.stringify(order), references })
  const texts = Object.values(track('umlauts')).flatMap((text: string) => [
    text.length * 2,
    ...Buffer.from(text),
  ])
  const payload = [...texts, 2, 'total'.length * 2, ...Buffer.from('total'), 60, 0]
  await sluice.send('web', [{ key: 'u', value: framed(id, payload) }])
  await arrived('umlauts')
  expect(delivered().find(({ messageId }) => messageId === 'umlauts')).toMatchObject({
    event: 'Bought',
    properties: { total: { größe: 30 } },
  })
})

test('a message that a JSON Schema describes is delivered, and one that does not fit is a dead letter', async () => {
  const schema = readFileSync(resolve(import.meta.dirname, '../../../schemas/event.schema.json'), 'utf8')
  const { id } = await client.register({ type: SchemaType.JSON, schema }, { subject: 'delivered-json' })
  const good = await client.encode(id, { ...track('json-1'), more: ['😀'] })
  // The library would refuse to encode this message.
  const bad = Buffer.concat([
    good.subarray(0, 5),
    Buffer.from(JSON.stringify({ ...track('json-2'), event: 7 })),
  ])
  await sluice.send('web', [{ value: good }, { value: bad }])
  await arrived('json-1')
  expect(delivered().find(({ messageId }) => messageId === 'json-1')).toMatchObject({ more: ['😀'] })
  const [letter] = await nextLetters(1)
  expect(letter?.headers).toMatchObject({ reason: 'schema_mismatch', 'source-id': 'web' })
  expect(letter?.value).toEqual(bad)
})

describe('a framed value that can not be read is a dead letter as it came, and the partition goes on:', () => {
  test('an unknown schema, a value that does not fit, a frame that is none, Protobuf', async () => {
    const id = await registerAvro('dead-letters')
    const proto = await client.register(
      { type: SchemaType.PROTOBUF, schema: 'syntax = "proto3"; message A { string a = 1; }' },
      { subject: 'protobuf' },
    )
    const values = [
      Buffer.from('00000f4240ff', 'hex'),
      (await client.encode(id, track('cut'))).subarray(0, 12),
      Buffer.from([0, 1]),
      await client.encode(proto.id, { a: 'x' }),
    ]
    await sluice.send('web', [
      ...values.map((value) => ({ value, partition: 0 })),
      { value: track('last'), partition: 0 },
    ])
    const found = await nextLetters(values.length)
    expect(found.map(({ headers: { reason } }) => reason)).toEqual([
      'unknown_schema',
      'schema_mismatch',
      'bad_frame',
      'unusable_schema',
    ])
    expect(found.map(({ value }) => value)).toEqual(values)
    await arrived('last')
  })
})

test('a schema that the registry has and can not give makes a dead letter, and the partition goes on', async () => {
  // By this API, Apicurio takes a namespace that it refuses when somebody asks for the schema.
  const schema = { type: 'record', name: 'Order', namespace: 'com.acme.web-shop', fields: [] }
  const content = { content: JSON.stringify(schema), contentType: 'application/json' }
  const response = await fetch(
    `${registry.url.replace('ccompat/v7', 'registry/v3')}/groups/default/artifacts`,
    {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ artifactId: 'shop', artifactType: 'AVRO', firstVersion: { content } }),
    },
  )
  expect(response.status).toBe(200)
  const created: { version: { contentId: number } } = JSON.parse(await response.text())
  const value = framed(created.version.contentId, [])
  await sluice.send('web', [
    { value, partition: 0 },
    { value: track('after the ungiven'), partition: 0 },
  ])
  const [letter] = await nextLetters(1)
  expect(letter?.headers).toMatchObject({
    reason: 'unusable_schema',
    detail: expect.stringContaining('the registry answers 400: Failed to discover artifact type'),
  })
  expect(letter?.value).toEqual(value)
  await arrived('after the ungiven')
})

describe('while the registry is down', () => {
  test('only partitions that need it wait, and nothing is lost when it is back', async () => {
    const known = await registerAvro('known')
    const missing = await registerAvro('missing')
    await sluice.send('web', [{ value: await client.encode(known, track('known-0')), partition: 1 }])
    await arrived('known-0')

    await registry.kill()
    await sluice.send('web', [
      { value: track('before'), partition: 0 },
      { value: await client.encode(missing, track('waiting')), partition: 0 },
      { value: track('behind'), partition: 0 },
      { value: await client.encode(known, track('known-1')), partition: 1 },
      { value: track('plain'), partition: 2 },
    ])
    await arrived('before', 'known-1', 'plain')
    await until(
      'a partition waits',
      async () => (await sluice.worker.metric('sluice_schema_registry_down')) === 1,
    )
    expect(await sluice.worker.metric('sluice_partitions_waiting_for_schema')).toBe(1)
    expect(await sluice.worker.metric('sluice_held_records')).toBe(2)
    expect((await fetch(`http://127.0.0.1:${sluice.worker.httpPort}/readyz`)).status).toBe(200)
    // Other records are delivered, however long the registry is down.
    await sluice.send('web', [
      { value: await client.encode(known, track('known-2')), partition: 1 },
      { value: track('plain-2'), partition: 2 },
      { value: track('far behind'), partition: 0 },
    ])
    await arrived('known-2', 'plain-2')
    expect(deliveredIds()).not.toContain('waiting')

    await registry.start()
    await arrived('waiting', 'behind', 'far behind')
    await until(
      'all is settled',
      async () => (await sluice.worker.metric('sluice_consumer_lag_records')) === 0,
    )
    expect(await sluice.worker.metric('sluice_schema_registry_down')).toBe(0)
    expect(await sluice.worker.metric('sluice_partitions_waiting_for_schema')).toBe(0)
    expect(new Set(deliveredIds()).size).toBe(deliveredIds().length)
    await until('the log says that it is back', () => said().length > 1)
    expect(said()).toEqual([
      ['error', 'the schema registry gives no schema: partitions that need it wait'],
      ['info', 'the schema registry answers again'],
    ])
  })

  test('a worker that stops leaves what waits to the next', async () => {
    const id = await registerAvro('left-behind')
    await registry.kill()
    await sluice.send('web', [{ value: await client.encode(id, track('left behind')), partition: 0 }])
    await until('it waits', async () => (await sluice.worker.metric('sluice_schema_registry_down')) === 1)
    const { code, tookMs } = await sluice.worker.terminate()
    expect(code).toBe(0)
    expect(tookMs).toBeLessThan(5_000)
    await registry.start()
    await sluice.restart()
    await arrived('left behind')
  })
})

test('without a registry, a framed value is a dead letter that names the setting', async () => {
  const id = await registerAvro('no-registry')
  const without = await deploy({
    destinations: [{ id: 'shop', sources: ['web'], hooks: [{ url: `${server.origin}/hook` }] }],
  })
  try {
    await without.send('web', [{ value: await client.encode(id, track('m1')) }])
    const [letter] = await without.read('dead-letters', 1)
    expect(letter?.headers).toMatchObject({
      reason: 'no_schema_registry',
      detail: expect.stringContaining('SLUICE_REGISTRY_URL'),
    })
  } finally {
    await without.stop()
  }
})

test('a producer that invents a schema id for each message holds up nobody for long', async () => {
  const invented = 200
  const values = Array.from({ length: invented }, (_, index) => {
    const value = Buffer.alloc(9)
    value.writeInt32BE(1_000_000 + index, 1)
    return { key: 'u', value }
  })
  const good = { key: 'u', value: Buffer.from(JSON.stringify(track('after-invented-ids'))) }
  const startedMs = performance.now()
  await sluice.send('web', [...values, good])
  await until('the good message arrives', () => deliveredIds().includes('after-invented-ids'), {
    timeoutMs: 90_000,
  })
  // If the worker asked for the schemas one after the other, and three times for each, this would take 200
  // s.
  expect(performance.now() - startedMs).toBeLessThan(60_000)
  const refused = await nextLetters(invented)
  expect(refused.map(({ headers }) => headers['reason'])).toEqual(values.map(() => 'unknown_schema'))
})
