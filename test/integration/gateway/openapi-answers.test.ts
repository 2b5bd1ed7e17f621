import { connect } from 'node:net'
import { text as readText } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openApiDocument } from '../../../src/gateway/http/gateway-openapi.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

/**
 * A test that the answers of the gateway are those in the OpenAPI document. It calls each operation in all
 * ways in which a call can be wrong.
 */

type Operation = { operationId: string; responses: Record<string, { description: string }> }
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parts that the test looks at
const { paths } = JSON.parse(JSON.stringify(openApiDocument())) as {
  paths: Record<string, Record<'post' | 'get', Operation>>
}

/**
 * The operations of the document. If one call has several paths, only the first is listed, because the others
 * are the same route.
 */
const operations = Object.entries(paths)
  .flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  )
  .filter(({ operation }) => !/_\d+$/.test(operation.operationId))

const serverKey = 'server-key-of-the-shop'
let gateway: TestGateway

beforeAll(async () => {
  gateway = await startGateway({
    sources: [
      { id: 'shop', writeKeys: ['KEY'], serverKeys: [serverKey] },
      { id: 'slow', writeKeys: ['SLOW'], maxPerSecond: 1 },
      { id: 'space', kind: 'audiences', serverKeys: ['server-key-of-the-space'], maxPerSecond: 1 },
    ],
    variables: { SLUICE_GATEWAY_REQUEST_TIMEOUT: '5s' },
  })
})

afterAll(() => gateway.stop())

type Seen = { status: string; code: string | undefined }

async function ask(
  method: string,
  path: string,
  headers: readonly string[],
  body: string | Buffer = '',
): Promise<Seen> {
  const socket = connect(gateway.process.gatewayPort, '127.0.0.1')
  const length = headers.some((header) => header.startsWith('Content-Length'))
    ? []
    : [`Content-Length: ${body.length}`]
  const head = [`${method} ${path} HTTP/1.1`, 'Host: g', 'Connection: close', ...length, ...headers]
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  socket.write(body)
  const answer = await readText(socket)
  return {
    status: /^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 'none',
    code: /"code":"(\w+)"/.exec(answer)?.[1],
  }
}

const bearer = (key: string): string => `Authorization: Bearer ${key}`
const keys = ['KEY', 'SLOW', 'OTHER', serverKey, 'server-key-of-the-space']
const bodies = [
  '{}',
  '{',
  '[]',
  '{"batch": 1}',
  `{"batch": [${'1,'.repeat(2_500)}1]}`,
  `{"changes": [${'1,'.repeat(2_500)}1]}`,
  '{"changes": [{"type": "membership", "audienceId": "a", "audienceName": "A", "userId": "u1", "member": true}]}',
  '{"userId": "u1", "sources": ["other"]}',
  '{"batch": [{"type": "track"}, {"type": "track"}, {"type": "track"}]}',
]

const dense = gzipSync(`{"x":[1.0${',{}'.repeat(10_000)}]}`)
const expensive = `{"batch":[{"x":[1.0${',{}'.repeat(160_000)}`

function* askings(method: string, path: string): Generator<Promise<Seen>> {
  if (method === 'GET') yield ask(method, path, [])
  else {
    for (const body of bodies) for (const key of keys) yield ask(method, path, [bearer(key)], body)
    yield ask(method, path, [], `"${'x'.repeat(600_000)}"`)
    yield ask(method, path, [bearer('KEY')], dense)
  }
  yield ask(method, path, [`X-Large: ${'x'.repeat(17_000)}`])
  // The head announces a body of 100 bytes, which is never sent.
  yield ask(method, path, ['Content-Length: 100'], '{')
}

test('each answer is one that the document has, and all that can be asked for are seen', async () => {
  const undocumented: string[] = []
  const seen = new Set<string>()
  const compare = async (method: string, path: string, { responses }: Operation): Promise<void> => {
    const asked = path.replace('{writeKey}', 'OTHER').replace('{call}', 'track')
    for (const { status, code } of await Promise.all(askings(method.toUpperCase(), asked))) {
      seen.add(`${status} ${code}`)
      const documented = responses[status]?.description.split(', ') ?? []
      const isDocumented = code === undefined ? status in responses : documented.includes(code)
      if (!isDocumented) undocumented.push(`${method} ${path}: ${status} ${code}`)
    }
  }
  await Promise.all(operations.map(({ method, path, operation }) => compare(method, path, operation)))
  expect([...new Set(undocumented)]).toEqual([])
  await until('the client was refused too often', async () => {
    const { status, code } = await ask('POST', '/v1/batch', [bearer('KEY')], expensive)
    seen.add(`${status} ${code}`)
    return code === 'refused_too_often'
  })
  // These answers need a fault of Sluice, of Kafka or of the network. The test has no such faults.
  const unseen = operations
    .flatMap(({ operation }) => Object.entries(operation.responses))
    .flatMap(([status, { description }]) => description.split(', ').map((code) => `${status} ${code}`))
    .filter((answer) => !answer.startsWith('200 ') && !seen.has(answer))
  expect(new Set(unseen)).toEqual(
    new Set(['500 internal_error', '503 overloaded', '503 kafka_unavailable', '400 incomplete_body']),
  )
})
