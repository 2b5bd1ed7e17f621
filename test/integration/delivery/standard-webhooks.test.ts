import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pythonPackage } from '../../support/python-packages.ts'
import { answer, inTurn, type ReceivedRequest, type Receiver, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type Deployment, type DestinationEntry, deploy } from './deployment.ts'

/**
 * Tests with receivers that verify signatures with the published packages of Standard Webhooks, for Node and
 * for Python.
 */

const textSecret = 'a söcret with spaces'
/** The form in which the packages get `textSecret`. */
const writtenSecret = `whsec_${Buffer.from(textSecret).toString('base64')}`
const keySecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

const pythonRequirement = 'standardwebhooks==1.1.0'
const mostInstallMs = 5 * 60_000

/** Ids of messages. Some of them can be the value of a header, and some can't. */
const messageIds = {
  plain: '01890b2e-6d1c-7c3a-9b43-0242ac120002',
  dotted: 'sluice.events-0-17',
  foul: 'id\r\nX-A: b',
  written: 'é 漢 😀',
}

type PythonReport = { messageId: string; verified: readonly boolean[] }

const pythonSaw = new Map<string, PythonReport>()
let server: Receiver
let python: ChildProcess
let pythonPort: number
let sluice: Deployment

function destination(id: string, rest: Partial<DestinationEntry> = {}): DestinationEntry {
  return {
    id,
    sources: [id],
    sharedSecret: textSecret,
    signing: { standardWebhooks: true },
    hooks: [{ url: `${server.origin}/${id}` }],
    ...rest,
  }
}

/** A destination that changes from one secret to another. */
const rotating: Partial<DestinationEntry> = { sharedSecret: textSecret, nextSharedSecret: keySecret }

beforeAll(async () => {
  server = await startReceiver({
    '/text': answer(200),
    '/key': answer(200),
    '/plain': answer(200),
    '/rotating': answer(200),
    '/twice': inTurn(answer(500), answer(200)),
    '/first-of-two': answer(200),
    '/second-of-two': answer(200),
  })
  pythonPort = await startPython([writtenSecret, keySecret])
  const pythonHook = [{ url: `http://127.0.0.1:${pythonPort}/` }]
  sluice = await deploy({
    destinations: [
      destination('text'),
      destination('key', { sharedSecret: keySecret }),
      destination('python-text', { hooks: pythonHook }),
      destination('python-key', { sharedSecret: keySecret, hooks: pythonHook }),
      destination('python-rotating', { ...rotating, hooks: pythonHook }),
      destination('plain', { signing: { standardWebhooks: false } }),
      destination('rotating', rotating),
      destination('twice'),
      destination('of-two', {
        hooks: [{ url: `${server.origin}/first-of-two` }, { url: `${server.origin}/second-of-two` }],
      }),
    ],
    variables: { SLUICE_RETRY_LADDER: '1s', SLUICE_RETRY_THEN: '1s' },
  })
}, mostInstallMs)

afterAll(async () => {
  await sluice?.stop()
  python?.stdin?.end()
  await server?.stop()
})

async function startPython(secrets: readonly string[]): Promise<number> {
  const folder = await pythonPackage(pythonRequirement)
  const child = spawn('python3', [join(import.meta.dirname, 'standard_webhooks_receiver.py'), ...secrets], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, PYTHONPATH: folder },
  })
  python = child
  const lines: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line)
    if (lines.length === 1) return
    const report: PythonReport = JSON.parse(line)
    pythonSaw.set(report.messageId, report)
  })
  // If python3 is missing, this line throws the error.
  await once(child, 'spawn')
  return Number(await until('the Python receiver tells its port', () => lines[0]))
}

function track(messageId: string): object {
  return { type: 'track', userId: 'u1', event: 'é "\n\u2028😀', messageId, properties: { total: 1e21 } }
}

async function send(source: string, ids: readonly string[]): Promise<void> {
  await sluice.send(
    source,
    ids.map((messageId) => ({ key: 'u1', value: track(messageId) })),
  )
}

async function arrived(path: string, count: number): Promise<readonly ReceivedRequest[]> {
  return until(`${count} have come to ${path}`, () => {
    const requests = server.requestsTo(path)
    return requests.length >= count ? requests : undefined
  })
}

function verify(secret: string, { body, headers }: Pick<ReceivedRequest, 'body' | 'headers'>): unknown {
  const texts = Object.entries(headers).map(([name, value]) => [name, String(value)])
  return new Webhook(secret).verify(body, Object.fromEntries(texts))
}

function isVerifiedBy(secret: string, request: Pick<ReceivedRequest, 'body' | 'headers'>): boolean {
  try {
    verify(secret, request)
    return true
  } catch {
    return false
  }
}

function secondsOf({ headers }: ReceivedRequest): number {
  return Number(headers['webhook-timestamp'])
}

describe('the package for Node verifies', () => {
  test.each([
    ['text', writtenSecret],
    ['key', keySecret],
  ])('what is signed with a secret that is %s', async (source, secret) => {
    await send(source, Object.values(messageIds))
    const requests = await arrived(`/${source}`, Object.keys(messageIds).length)
    for (const request of requests)
      expect(verify(secret, request)).toEqual(JSON.parse(request.body.toString()))
  })

  test('nothing that was changed on its way', async () => {
    await send('text', [messageIds.plain])
    const [request] = await arrived('/text', 1)
    if (request === undefined) throw new Error('nothing has come')
    const { body, headers } = request
    expect(isVerifiedBy(writtenSecret, request)).toBe(true)
    const other = { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) + 1) }
    expect(isVerifiedBy(writtenSecret, { body, headers: other })).toBe(false)
    expect(isVerifiedBy(writtenSecret, { body, headers: { ...headers, 'webhook-id': 'm' } })).toBe(false)
    expect(isVerifiedBy(writtenSecret, { body: Buffer.concat([body, Buffer.from(' ')]), headers })).toBe(
      false,
    )
    expect(isVerifiedBy(keySecret, request)).toBe(false)
  })
})

describe('the package for Python verifies', () => {
  test.each([
    ['python-text', [true, false]],
    ['python-key', [false, true]],
    ['python-rotating', [true, true]],
  ])('what comes from the destination %s', async (source, verified) => {
    const ids = Object.values(messageIds).map((id) => `${source} ${id}`)
    await send(source, ids)
    for (const id of ids) {
      const report = await until('it has come', () => pythonSaw.get(id))
      expect(report.verified).toEqual(verified)
    }
  })
})

describe('webhook-id', () => {
  test('is the messageId where it can stand in a header, and else a hash of it', async () => {
    await send('rotating', Object.values(messageIds))
    const requests = await arrived('/rotating', Object.keys(messageIds).length)
    const ids = new Map(
      requests.map(({ body, headers }) => [JSON.parse(body.toString()).messageId, headers['webhook-id']]),
    )
    expect(ids.get(messageIds.plain)).toBe(messageIds.plain)
    for (const id of [messageIds.dotted, messageIds.foul, messageIds.written]) {
      expect(ids.get(id)).toMatch(/^[A-Za-z0-9_-]{43}$/)
    }
    expect(new Set(ids.values()).size).toBe(ids.size)
  })

  test('is the same for each attempt, and the timestamp is of the attempt', async () => {
    await send('twice', [messageIds.foul])
    const [first, second] = await arrived('/twice', 2)
    if (first === undefined || second === undefined) throw new Error('nothing has come')
    expect(second.headers['webhook-id']).toBe(first.headers['webhook-id'])
    expect(secondsOf(second)).toBeGreaterThan(secondsOf(first))
    for (const request of [first, second]) {
      expect(isVerifiedBy(writtenSecret, request)).toBe(true)
      const nowSeconds = request.atMs / 1_000
      expect(secondsOf(request)).toBeGreaterThan(nowSeconds - 10)
      expect(secondsOf(request)).toBeLessThanOrEqual(nowSeconds)
    }
  })

  test('and the signatures are the same for each URL of a destination', async () => {
    await send('of-two', [messageIds.plain])
    const [first] = await arrived('/first-of-two', 1)
    const [second] = await arrived('/second-of-two', 1)
    const signed = ['x-signature', 'webhook-id', 'webhook-timestamp', 'webhook-signature']
    for (const name of signed) {
      expect(first?.headers[name]).toMatch(/./)
      expect(second?.headers[name]).toBe(first?.headers[name])
    }
  })
})

test('a destination that does not ask for them has X-Signature alone', async () => {
  await send('plain', [messageIds.plain])
  const [request] = await arrived('/plain', 1)
  expect(request?.headers['x-signature']).toMatch(/^[0-9a-f]{40}$/)
  expect(Object.keys(request?.headers ?? {}).filter((name) => name.startsWith('webhook-'))).toEqual([])
})
