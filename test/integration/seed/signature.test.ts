import { type ChildProcess, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import express from 'express'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { portOf } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type Deployment, type DestinationEntry, deploy } from '../delivery/deployment.ts'

/**
 * Tests of section 5 of the specification (the seed, which gives this folder its name). Receivers verify
 * `X-Signature` over the body that they have parsed and serialized again. One receiver runs the sample of
 * Segment's documentation under Express. The other is written in Python.
 */

const secret = 'a söcret with spaces'

/**
 * The secrets of a receiver that changes from one secret to another. It accepts a request that either secret
 * verifies.
 */
const rotation = { old: 'the old secret', next: 'whsec_bmV4dA==' }

/** A body in a spelling that a producer may use. `{id}` stands for its messageId. */
type Spelling = {
  name: string
  text: string
  /** The body that must arrive. It is given only in rows in which a reader may want to see it. */
  sent?: string
  /**
   * True if Python serializes the body differently from JSON.stringify, as it does with floats and halves of
   * surrogate pairs.
   */
  isBeyondPython?: boolean
}

const head =
  '"type":"track","userId":"u1","event":"E","timestamp":"2026-01-02T03:04:05.006Z","messageId":"{id}"'
const canonicalHead = `"version":1,${head}`
const spelled = (properties: string) => `{${head},"properties":${properties}}`
const arrives = (properties: string) => `{${canonicalHead},"properties":${properties},"context":{}}`

const spellings: Spelling[] = [
  { name: 'as JSON.stringify writes it', text: spelled('{"a":1}'), sent: arrives('{"a":1}') },
  { name: 'a whole number with a fraction: 1.0', text: spelled('{"a":1.0}'), sent: arrives('{"a":1}') },
  { name: 'a number with an exponent: 1e3', text: spelled('{"a":1e3}'), sent: arrives('{"a":1000}') },
  { name: 'minus nought', text: spelled('{"a":-0,"b":-0.0}'), sent: arrives('{"a":0,"b":0}') },
  {
    name: 'numbers that stay fractions',
    text: spelled('{"a":0.1000,"b":1E21,"c":1e-7}'),
    sent: arrives('{"a":0.1,"b":1e+21,"c":1e-7}'),
    isBeyondPython: true,
  },
  {
    name: 'an integer that no double holds',
    text: spelled('{"a":9007199254740993}'),
    sent: arrives('{"a":9007199254740992}'),
  },
  {
    name: 'keys like integers, out of order',
    text: spelled('{"b":0,"10":1,"2":2,"1":3}'),
    sent: arrives('{"1":3,"2":2,"10":1,"b":0}'),
  },
  { name: 'repeated keys', text: spelled('{"a":1,"b":2,"a":3}'), sent: arrives('{"a":3,"b":2}') },
  { name: 'escapes without need', text: spelled('{"\\u0041":"\\u0042\\/"}'), sent: arrives('{"A":"B/"}') },
  {
    name: 'spaces and line breaks',
    text: `\r\n { ${head} ,\n\t"properties" : { "a" : [ 1 , 2 ] } } `,
    sent: arrives('{"a":[1,2]}'),
  },
  {
    name: 'emojis and other scripts',
    text: spelled('{"😀":"漢字 é \\ud83d\\ude00","b":"\u2028\u2029\u007f"}'),
    sent: arrives('{"😀":"漢字 é 😀","b":"\u2028\u2029\u007f"}'),
  },
  {
    name: 'control characters',
    text: spelled('{"a":"\\u0000\\u001F\\b\\t\\n\\f\\r\\"\\\\"}'),
    sent: arrives('{"a":"\\u0000\\u001f\\b\\t\\n\\f\\r\\"\\\\"}'),
  },
  {
    name: 'halves of surrogate pairs',
    text: spelled('{"a":"\\uD800","b":"\\uDE00\\uD83D"}'),
    sent: arrives('{"a":"\\ud800","b":"\\ude00\\ud83d"}'),
    isBeyondPython: true,
  },
  {
    name: 'a field named __proto__',
    text: spelled('{"__proto__":{"admin":true},"constructor":{"prototype":{}}}'),
    sent: arrives('{"__proto__":{"admin":true},"constructor":{"prototype":{}}}'),
  },
  { name: 'a byte order mark', text: `\ufeff${spelled('{"a":1}')}`, sent: arrives('{"a":1}') },
  // This message has 99 levels in all. The limit is 100.
  { name: 'deep nesting', text: spelled(`${'{"a":[1,'.repeat(49)}0${']}'.repeat(49)}`) },
  { name: '100 KB', text: spelled(JSON.stringify({ a: 'é "\n'.repeat(20_000) })) },
]

const idOf = (spelling: Spelling): string => `m-${spellings.indexOf(spelling)}`

type Verification = { messageId: string; raw: boolean; writtenAgain: boolean; body?: string }

const expressSaw = new Map<string, Verification & { body: string }>()
const pythonSaw = new Map<string, Verification>()
/** The secrets with which Segment's sample verified each message, by messageId. */
const rotatingSaw = new Map<string, readonly string[]>()
let fixedDestinations: readonly DestinationEntry[]
let rotatingHooks: readonly { url: string }[]
let expressServer: ReturnType<express.Express['listen']>
let python: ChildProcess
let sluice: Deployment

beforeAll(async () => {
  const [expressPort, pythonPort] = await Promise.all([startExpress(), startPython()])

  fixedDestinations = [
    { id: 'express', sources: ['shop'], sharedSecret: secret, hooks: hooksAt(expressPort) },
    { id: 'python', sources: ['shop'], sharedSecret: secret, hooks: hooksAt(pythonPort) },
  ]
  rotatingHooks = [{ url: `http://127.0.0.1:${expressPort}/rotating` }]
  sluice = await deploy({ destinations: [...fixedDestinations, rotating({ sharedSecret: rotation.old })] })
  await sluice.send(
    'shop',
    spellings.map((spelling) => ({ key: 'u1', value: spelling.text.replace('{id}', idOf(spelling)) })),
  )
  const attempts = () => sluice.worker.metric('sluice_attempts_total')
  await until('each receiver has had all', async () => (await attempts()) >= 2 * spellings.length)
})

afterAll(async () => {
  await sluice?.stop()
  expressServer?.close()
  python?.stdin?.end()
})

function rotating(secrets: Partial<DestinationEntry>): DestinationEntry {
  return { id: 'rotating', sources: ['rotating'], hooks: rotatingHooks, ...secrets }
}

function hooksAt(port: number): { url: string }[] {
  return [{ url: `http://127.0.0.1:${port}/` }]
}

/**
 * Starts a receiver with Segment's sample, which parses, stringifies, computes the HMAC and compares. The
 * receiver also keeps the raw bytes for comparisons in the tests. Returns the port.
 */
async function startExpress(): Promise<number> {
  const app = express()
  const rawBodies = new WeakMap<object, Buffer>()
  app.use(express.json({ limit: '1mb', verify: (req, _res, raw) => void rawBodies.set(req, raw) }))
  app.post('/', (req, res) => {
    const signature = req.headers['x-signature']
    const digest = createHmac('sha1', secret).update(JSON.stringify(req.body)).digest('hex')
    const raw = rawBodies.get(req) ?? Buffer.alloc(0)
    const rawDigest = createHmac('sha1', secret).update(raw).digest('hex')
    const { messageId } = req.body
    expressSaw.set(messageId, {
      messageId,
      raw: signature === rawDigest,
      writtenAgain: signature === digest,
      body: raw.toString(),
    })
    res.sendStatus(signature === digest ? 200 : 401)
  })
  app.post('/rotating', (req, res) => {
    const signature = req.headers['x-signature']
    const verifying = Object.values(rotation).filter((one) => {
      return signature === createHmac('sha1', one).update(JSON.stringify(req.body)).digest('hex')
    })
    rotatingSaw.set(req.body.messageId, verifying)
    res.sendStatus(verifying.length > 0 ? 200 : 401)
  })
  expressServer = app.listen(0, '127.0.0.1')
  await once(expressServer, 'listening')
  return portOf(expressServer)
}

async function startPython(): Promise<number> {
  const child = spawn('python3', [join(import.meta.dirname, 'receiver.py'), secret], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  python = child
  const lines: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line)
    if (lines.length === 1) return
    const report: Verification = JSON.parse(line)
    pythonSaw.set(report.messageId, report)
  })
  // If python3 is missing, this line throws the error.
  await once(child, 'spawn')
  return Number(await until('the Python receiver tells its port', () => lines[0]))
}

/** Returns the properties of a body as JavaScript reads them. */
function propertiesOf(text: string): string {
  return JSON.stringify(JSON.parse(text).properties)
}

describe("Express with Segment's sample verifies", () => {
  test.each(spellings)('$name', async (spelling) => {
    const seen = await until('it has come', () => expressSaw.get(idOf(spelling)))
    expect(seen).toMatchObject({ raw: true, writtenAgain: true })
    const { text, sent = seen.body } = spelling
    expect(seen.body).toBe(sent.replace('{id}', idOf(spelling)))
    expect(propertiesOf(seen.body)).toBe(propertiesOf(text.replace('\ufeff', '')))
  })
})

describe('Python verifies over the raw bytes', () => {
  test.each(spellings)('$name', async (spelling) => {
    const seen = await until('it has come', () => pythonSaw.get(idOf(spelling)))
    expect(seen).toMatchObject({ raw: true })
  })
})

describe('Python verifies over the body that it parsed and wrote again', () => {
  test.each(spellings.filter(({ isBeyondPython }) => isBeyondPython !== true))('$name', async (spelling) => {
    const seen = await until('it has come', () => pythonSaw.get(idOf(spelling)))
    expect(seen).toMatchObject({ writtenAgain: true })
  })
})

test('nothing was refused by a receiver', async () => {
  const delivered = () => sluice.worker.metric('sluice_deliveries_total', { verdict: 'delivered' })
  await until('all are delivered', async () => (await delivered()) === 2 * spellings.length)
  expect(await sluice.worker.metric('sluice_attempts_total')).toBe(2 * spellings.length)
})

/** Sends a new message, and returns the secrets with which the receiver verified it. */
async function verifyingSecrets(messageId: string): Promise<readonly string[]> {
  const value = { type: 'track', userId: 'u1', event: 'E', messageId }
  await sluice.send('rotating', [{ key: 'u1', value }])
  return until('it has come', () => rotatingSaw.get(messageId))
}

async function edit(secrets: Partial<DestinationEntry>): Promise<void> {
  await sluice.worker.untilLogged('the catalog has changed', () =>
    sluice.recatalog([...fixedDestinations, rotating(secrets)]),
  )
}

describe('a receiver that changes its secret', () => {
  test('verifies with the old secret until the new one is written in its place', async () => {
    expect(await verifyingSecrets('before')).toEqual([rotation.old])
    await edit({
      sharedSecret: rotation.old,
      nextSharedSecret: rotation.next,
      signing: { standardWebhooks: true },
    })
    expect(await verifyingSecrets('between')).toEqual([rotation.old])
    await edit({ sharedSecret: rotation.next, signing: { standardWebhooks: true } })
    expect(await verifyingSecrets('after')).toEqual([rotation.next])
  })
})
