import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { selfSigned } from '../../support/certificates.ts'
import { startConnectProxy } from '../../support/connect-proxy.ts'
import { answer, neverAnswer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { type CatalogData, runToEnd, writeCatalog } from '../../support/worker-process.ts'

// Tests of `sluice destinations test`. It sends to real servers. No Kafka is configured.

const secret = 'change-me'
let receiver: Receiver
let untrusted: Receiver
let catalog: ReturnType<typeof writeCatalog>
let variables: Record<string, string>

function catalogOf(plain: string, tls: string): CatalogData {
  return {
    sources: [{ id: 'shop' }],
    destinations: [
      {
        id: 'crm',
        sources: ['shop'],
        sharedSecret: secret,
        hooks: [
          { id: 'good', url: `${plain}/good`, headers: { 'X-Team': 'crm' } },
          { id: 'refusing', url: `${plain}/refusing/s3cr3tTOKEN99` },
          { id: 'tls', url: `${tls}/` },
          { id: 'private', url: 'http://10.0.0.1/' },
        ],
      },
      {
        id: 'failing',
        sources: ['shop'],
        hooks: [
          { id: 'silent', url: `${plain}/silent` },
          { id: 'gone', url: `${plain}/gone` },
        ],
      },
      {
        id: 'unsigned',
        state: 'paused',
        sources: ['shop'],
        filter: { types: ['identify'] },
        hooks: [{ url: `${plain}/unsigned` }],
      },
      { id: 'away', state: 'off', sources: ['shop'], hooks: [{ url: `${plain}/away` }] },
    ],
  }
}

beforeAll(async () => {
  receiver = await startReceiver({
    '/good': answer(204),
    '/unsigned': answer(200),
    '/away': answer(200),
    '/silent': neverAnswer,
    '/refusing/s3cr3tTOKEN99': answer(
      401,
      {},
      `bad\u001b[2J signature\nmade with ${secret}\nno such hook: s3cr3tTOKEN99 of sluice-test`,
    ),
  })
  untrusted = await startReceiver(answer(200), { identity: selfSigned({ names: ['127.0.0.1'] }) })
  catalog = writeCatalog(catalogOf(receiver.origin, untrusted.origin))
  variables = {
    SLUICE_CATALOG_FILE: catalog.path,
    SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.1',
  }
})

afterAll(async () => {
  catalog.remove()
  await Promise.all([receiver.stop(), untrusted.stop()])
})

function run(...args: readonly string[]) {
  return runToEnd(['destinations', 'test', ...args], variables)
}

function signatureOf(body: Buffer): string {
  return createHmac('sha1', secret).update(body).digest('hex')
}

test('each URL of a destination gets the same message, and the output says what each came to', async () => {
  const { code, stdout, stderr } = await run('crm')
  expect(stderr).toBe('')
  const [headline, ...lines] = stdout.replaceAll(/ {2}\d+ ms/g, '  N ms').split('\n')
  expect(headline).toMatch(/^crm: track test-[-0-9a-f]{36}, for 4 URLs, signed with X-Signature$/)
  expect(lines.map((line) => line.replaceAll(/ {2,}/g, '  '))).toEqual([
    `good  ${receiver.origin}  status 204  N ms  accepted`,
    `refusing  ${receiver.origin}  status 401  N ms  failed for good: this URL would not be tried again`,
    '  | bad?[2J signature',
    '  | made with [redacted]',
    '  | no such hook: [redacted] of [redacted]',
    expect.stringContaining('sharedSecret'),
    `tls  ${untrusted.origin}  certificate DEPTH_ZERO_SELF_SIGNED_CERT  N ms  failed for good: this URL would not be tried again`,
    expect.stringContaining('The certificate is self-signed'),
    'private  http://10.0.0.1  address not allowed: 10.0.0.1 (delivery.allowAddresses)  N ms  failed for good: this URL would not be tried again',
    expect.stringContaining('add it to delivery.allowAddresses'),
    'A delivery would succeed, because one URL is enough.',
    'note: Workers refuse the whole catalog, because the address of private is not public.',
    '',
  ])
  expect(code).toBe(1)
  expect(untrusted.requests).toEqual([])

  const [good] = receiver.requestsTo('/good')
  expect(good?.headers).toMatchObject({
    'user-agent': 'Sluice/1.0',
    'content-type': 'application/json',
    'x-team': 'crm',
    'x-signature': signatureOf(good?.body ?? Buffer.alloc(0)),
    'x-sluice-test': 'true',
    'x-sluice-attempt': '1',
  })
  const messageId = /test-[-0-9a-f]{36}/.exec(headline ?? '')?.[0]
  expect(JSON.parse(String(good?.body))).toMatchObject({ type: 'track', event: 'Sluice Test', messageId })
  expect(receiver.requestsTo('/refusing/s3cr3tTOKEN99')[0]?.body).toEqual(good?.body)
})

test('an endpoint that never answers is given up at the deadline, and a delivery would be tried again', async () => {
  const { code, stdout } = await run('failing', '--delivery-timeout', '1s')
  expect(code).toBe(1)
  const lines = stdout.trimEnd().split('\n')
  expect(lines[1]).toMatch(/^silent .* timeout .* failed: this URL would be tried again$/)
  expect(lines[2]).toContain('No answer came within 1000 ms (delivery.timeout).')
  expect(lines.at(-1)).toBe('A delivery would be tried again.')
  const gone = await run('failing', '--hook', 'gone', '--json')
  expect(gone.code).toBe(1)
  expect(JSON.parse(gone.stdout)).toMatchObject({
    isAccepted: false,
    verdict: null,
    hooks: [{ status: 404 }],
  })
})

describe('through a proxy', () => {
  test('the request goes through its tunnel, and a refusal of the proxy is told as such', async () => {
    const proxy = await startConnectProxy(({ authority }) =>
      authority === new URL(receiver.origin).host ? { port: receiver.port } : { status: 403 },
    )
    onTestFinished(() => proxy.stop())
    const through = { ...variables, SLUICE_DELIVERY_PROXY: `http://127.0.0.1:${proxy.port}` }
    const before = proxy.requests.length
    const { code, stdout } = await runToEnd(['destinations', 'test', 'crm'], through)
    expect(code).toBe(1)
    expect(proxy.requests.length).toBeGreaterThan(before)
    expect(stdout).toMatch(/^good .* status 204 .* accepted$/m)
    expect(stdout).toMatch(/^tls .* connection CONNECT_403 .* failed: this URL would be tried again$/m)
    expect(stdout).toContain('The log of the proxy says why.')
  })

  test('nothing is sent while the proxy is down', async () => {
    const through = { ...variables, SLUICE_DELIVERY_PROXY: 'http://127.0.0.1:9' }
    const { code, stdout } = await runToEnd(['destinations', 'test', 'crm', '--hook', 'good'], through)
    expect(code).toBe(1)
    expect(stdout).toMatch(/^good .* proxy ECONNREFUSED .* not sent$/m)
    expect(stdout).toContain('The proxy failed, so nothing is known about the endpoint.')
  })
})

test('a message that is too long for an argument is read from standard input', async () => {
  const message = JSON.stringify({
    type: 'track',
    userId: 'u',
    event: 'e',
    properties: { x: 'y'.repeat(300_000) },
  })
  const args = ['destinations', 'test', 'crm', '-', '--hook', 'good']
  const { code } = await runToEnd(args, variables, { input: message })
  expect(code).toBe(0)
  expect(receiver.requestsTo('/good').at(-1)?.body.length).toBeGreaterThan(300_000)
})

test('a message of one’s own is sent to one URL in canonical form, and the exit code says that it is accepted', async () => {
  const message = ' {"type":"identify","userId":"u1","messageId":"m1","traits":{"a":1.0}}'
  const { code, stdout } = await run('crm', message, '--hook', 'good', '--json')
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toEqual({
    destination: 'crm',
    messageId: 'm1',
    isAccepted: true,
    verdict: null,
    hooks: [
      {
        hook: 'good',
        origin: receiver.origin,
        verdict: 'delivered',
        outcome: 'status 204',
        status: 204,
        durationMs: expect.any(Number),
        answer: null,
        advice: null,
        login: null,
        certificateEndsAt: null,
      },
    ],
    notes: [],
  })
  const body = receiver.requestsTo('/good').at(-1)?.body
  expect(JSON.parse(String(body))).toMatchObject({ version: 1, userId: 'u1', traits: { a: 1 }, context: {} })
})

test.each([
  [
    ['unsigned'],
    ['unsigned is paused in the catalog', 'The filter of unsigned excludes this message.'],
    'not signed',
  ],
  [['away'], ['away is off in the catalog'], 'not signed'],
  [
    ['crm', '{"type":"track","userId":"u","event":"e","integrations":{"All":false}}', '--hook', 'good'],
    ['The integrations of the message exclude webhooks.'],
    'signed with X-Signature',
  ],
])('%o is sent, and the notes say why a worker would not send it', async (args, notes, signed) => {
  const { code, stdout } = await run(...args)
  expect(code).toBe(0)
  const lines = stdout.trimEnd().split('\n')
  expect(lines[0]).toMatch(new RegExp(`, for 1 URL, ${signed}$`))
  expect(lines.slice(2)).toEqual(
    notes.map((note) => expect.stringMatching(new RegExp(`^note: ${note}.*This doesn't stop a test\\.$`))),
  )
})

describe('sends nothing, and says what is wrong:', () => {
  test.each([
    [['nobody'], 'The catalog has no destination "nobody": it has crm, failing, unsigned, away.'],
    [['crm', '--hook', 'nobody'], 'crm has no hook "nobody": it has good, refusing, tls, private.'],
    [['crm', '{"type":'], 'not_json: Send the value as one JSON object, and nothing else.'],
    [['crm', '{"type":"track","userId":"u"}'], 'Set event'],
    [[], "missing required argument 'destination'"],
  ])('%o', async (args, problem) => {
    const before = receiver.requests.length
    const { code, stderr, stdout } = await run(...args)
    expect(stderr).toContain(problem)
    expect(stdout).toBe('')
    expect(code).toBe(2)
    expect(receiver.requests).toHaveLength(before)
  })
})
