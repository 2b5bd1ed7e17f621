import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { selfSigned } from '../../support/certificates.ts'
import { answer, neverAnswer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { type CatalogData, runToEnd, writeCatalog } from '../../support/worker-process.ts'

// Tests of `sluice destinations test`. It sends to real servers. There is no Kafka at its brokers' address.

const secret = 'change-me'
const noKafka = '127.0.0.1:9'
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
          { id: 'refusing', url: `${plain}/refusing/hidden-token` },
          { id: 'silent', url: `${plain}/silent` },
          { id: 'tls', url: `${tls}/` },
          { id: 'private', url: 'http://10.0.0.1/' },
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
    '/refusing/hidden-token': answer(401, {}, `bad\u001b[2J signature\nmade with ${secret}`),
  })
  untrusted = await startReceiver(answer(200), { identity: selfSigned({ names: ['127.0.0.1'] }) })
  catalog = writeCatalog(catalogOf(receiver.origin, untrusted.origin))
  variables = {
    SLUICE_CATALOG_FILE: catalog.path,
    SLUICE_KAFKA_BROKERS: noKafka,
    SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.1',
    SLUICE_DELIVERY_TIMEOUT: '1s',
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
  expect(headline).toMatch(/^crm: track test-[-0-9a-f]{36}, sent to 5 URLs, signed with X-Signature$/)
  expect(lines.map((line) => line.replaceAll(/ {2,}/g, '  '))).toEqual([
    `good  ${receiver.origin}  status 204  N ms  accepted`,
    `refusing  ${receiver.origin}  status 401  N ms  not accepted: a delivery would fail for good`,
    '  | bad?[2J signature',
    '  | made with [redacted]',
    expect.stringContaining('sharedSecret'),
    `silent  ${receiver.origin}  timeout  N ms  not accepted: a delivery would be tried again`,
    expect.stringContaining('No answer came within 1000 ms (delivery.timeout).'),
    `tls  ${untrusted.origin}  certificate DEPTH_ZERO_SELF_SIGNED_CERT  N ms  not accepted: a delivery would fail for good`,
    expect.stringContaining('Sluice trusts no self-signed certificate.'),
    'private  http://10.0.0.1  address not allowed: 10.0.0.1 (delivery.allowAddresses)  N ms  not accepted: a delivery would fail for good',
    expect.stringContaining('add it to delivery.allowAddresses'),
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
  })
  const messageId = /test-[-0-9a-f]{36}/.exec(headline ?? '')?.[0]
  expect(JSON.parse(String(good?.body))).toMatchObject({ type: 'track', event: 'Sluice Test', messageId })
  expect(receiver.requestsTo('/silent')[0]?.body).toEqual(good?.body)
})

test('a message of one’s own is sent to one URL in canonical form, and the exit code says that it is accepted', async () => {
  const message = ' {"type":"identify","userId":"u1","messageId":"m1","traits":{"a":1.0}}'
  const { code, stdout } = await run('crm', message, '--hook', 'good', '--json')
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toEqual({
    destination: 'crm',
    messageId: 'm1',
    isAccepted: true,
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
  expect(lines[0]).toMatch(new RegExp(`, sent to 1 URL, ${signed}$`))
  expect(lines.slice(2)).toEqual(
    notes.map((note) => expect.stringMatching(new RegExp(`^note: ${note}.*The test was sent anyway\\.$`))),
  )
})

describe('sends nothing, and says what is wrong:', () => {
  test.each([
    [['nobody'], 'The catalog has no destination "nobody": it has crm, unsigned, away.'],
    [['crm', '--hook', 'nobody'], 'crm has no hook "nobody": it has good, refusing, silent, tls, private.'],
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
