import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Scene, setScene } from '../../e2e/scene.ts'
import { type AdminTokens, makeTokens } from '../../support/admin.ts'
import { produce } from '../../support/kafka.ts'
import { runToEnd, type SluiceProcess, startSluice } from '../../support/worker-process.ts'

// Mappings that are tried on messages of a request and on the last events of a source: by the admin API, and
// by `sluice mappings test`, which say the same.

const mappings = [
  {
    name: 'people',
    condition: 'type == "identify"',
    method: 'PUT',
    path: '/contacts/{{userId}}',
    body: { email: { '@path': '$.traits.email' } },
  },
  {
    name: 'orders',
    condition: 'properties.total > 0',
    headers: { 'X-Currency': { '@path': '$.properties.currency' } },
    body: { total: { '@path': '$.properties.total' } },
  },
]

let tokens: AdminTokens
let scene: Scene
let admin: SluiceProcess
let origin = ''

beforeAll(async () => {
  tokens = await makeTokens()
  scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }, { id: 'quiet' }],
      destinations: [
        {
          id: 'crm',
          sources: ['shop'],
          filter: { types: ['identify', 'track'] },
          mappings,
          hooks: [{ url: 'https://crm.example/hooks/secret-path?key=1' }],
        },
      ],
    },
    variables: { SLUICE_ADMIN_TOKENS_FILE: tokens.file },
  })
  admin = await startSluice(scene.variables, { role: 'admin' })
  origin = `http://127.0.0.1:${admin.adminPort}`
  await produce(
    `${scene.prefix}events`,
    messages.map((message) => ({
      key: 'u1',
      value: JSON.stringify(message),
      headers: { 'source-id': 'shop' },
    })),
  )
})

afterAll(async () => {
  await admin?.kill()
  scene?.close()
  tokens?.remove()
})

const messages = [
  { type: 'identify', userId: 'u 1', messageId: 'm1', traits: { email: 'ann@example.com' } },
  { type: 'track', userId: 'u1', messageId: 'm2', event: 'Paid', properties: { total: 5, currency: 'EUR' } },
  { type: 'track', userId: 'u1', messageId: 'm3', event: 'Seen', properties: {} },
  { type: 'identify', anonymousId: 'a1', messageId: 'm4', traits: {} },
]
const expected = [
  {
    messageId: 'm1',
    message: expect.stringContaining('"messageId":"m1"'),
    result: 'passes',
    detail: null,
    mapping: { place: 0, name: 'people' },
    request: {
      method: 'PUT',
      path: '/contacts/u%201',
      headers: [{ name: 'Content-Type', value: 'application/json' }],
      body: '{"email":"ann@example.com"}',
      isAlone: true,
    },
  },
  {
    messageId: 'm2',
    message: expect.stringContaining('"messageId":"m2"'),
    result: 'passes',
    detail: null,
    mapping: { place: 1, name: 'orders' },
    request: {
      method: 'POST',
      path: '',
      headers: [
        { name: 'Content-Type', value: 'application/json' },
        { name: 'X-Currency', value: 'EUR' },
      ],
      body: '{"total":5}',
      isAlone: true,
    },
  },
  {
    messageId: 'm3',
    message: expect.stringContaining('"messageId":"m3"'),
    result: 'excluded',
    detail: expect.stringMatching(
      /^no mapping is for it \(people: its condition is not met; orders: the message has no such field at character \d+: \S+\)$/,
    ),
    mapping: null,
    request: null,
  },
  {
    messageId: 'm4',
    message: expect.stringContaining('"messageId":"m4"'),
    result: 'mapping_failed',
    detail: expect.stringMatching(/^path has no usable text/),
    mapping: { place: 0, name: 'people' },
    request: null,
  },
]

async function post(path: string, token: string, body: object) {
  const response = await fetch(`${origin}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, json: JSON.parse(await response.text()) }
}

test('messages of a request are tried without a destination, and each is said which mapping is for it', async () => {
  expect(await post('/v1/preview', tokens.read, { mappings, messages })).toEqual({
    status: 200,
    json: { results: expected },
  })
  const fault = await post('/v1/preview', tokens.read, { mappings: [{ body: { '@liquid': '' } }], messages })
  expect(fault).toMatchObject({
    status: 422,
    json: { detail: expect.stringContaining('is not a directive that Sluice has') },
  })
})

test('the last events of a source are tried, by who may see what messages contain', async () => {
  const path = '/v1/sources/shop/preview'
  const { status, json } = await post(path, tokens.operate, { mappings, limit: 4 })
  expect([status, json.results]).toEqual([200, expected.toReversed()])
  expect((await post(path, tokens.read, { mappings })).status).toBe(403)
  expect((await post('/v1/sources/none/preview', tokens.operate, { mappings })).status).toBe(404)
})

function asking(token: string): Record<string, string> {
  return { ...scene.variables, SLUICE_ADMIN_URL: origin, SLUICE_ADMIN_TOKEN: token }
}

test('the command says the same of the last events of a source, with the URLs of a destination', async () => {
  const args = ['mappings', 'test', '--source', 'shop', '--limit', '4', '--destination', 'crm']
  const { code, stdout, stderr } = await runToEnd([...args, '--json'], asking(tokens.operate))
  // One of them would become a dead letter.
  expect([code, stderr]).toEqual([1, ''])
  const lines: object[] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const [first, second, ...others] = expected
  expect(lines).toEqual([
    { ...first, urls: ['https://crm.example/…/contacts/u%201'] },
    { ...second, urls: ['https://crm.example/…'] },
    ...others,
  ])
  const shown = await runToEnd(args, asking(tokens.operate))
  expect(shown.stdout.split('\n')).toEqual(
    expect.arrayContaining([
      'm1: mapping 1 (people)',
      '  PUT https://crm.example/…/contacts/u%201',
      '  {"email":"ann@example.com"}',
      'm2: mapping 2 (orders)',
      '  POST https://crm.example/…',
      '  X-Currency: EUR',
      '2 of 4 messages get a request.',
    ]),
  )
  expect(shown.stdout).not.toContain('secret-path')
})

test('a source without events, and a token that does not see them, are told', async () => {
  const args = ['mappings', 'test', '--destination', 'crm', '--source']
  const quiet = await runToEnd([...args, 'quiet'], asking(tokens.operate))
  expect([quiet.code, quiet.stderr]).toEqual([1, expect.stringContaining('has no recent events')])
  const blind = await runToEnd([...args, 'shop'], asking(tokens.read))
  expect([blind.code, blind.stderr]).toEqual([1, expect.stringContaining('answered 403')])
})
