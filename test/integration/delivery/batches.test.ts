import { type ChildProcess, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePorts } from '../../../src/development/free-ports.ts'
import {
  answer,
  type Receiver,
  type ReceivedRequest,
  type Script,
  startReceiver,
} from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type Deployment, type DestinationEntry, deploy } from './deployment.ts'

/** Batches on a real Kafka, to real servers. Each destination has a source and a path of its own. */

const secret = `whsec_${Buffer.from('of the batches, and no other').toString('base64')}`

let server: Receiver
let sluice: Deployment
let catalog: DestinationEntry[]
/** The receiver of batches of the examples, and what it has printed. */
let example: ChildProcess | undefined
let said = ''
/** The ids of the messages that a path has accepted, in their order. */
const accepted = new Map<string, string[]>()
/** The answers that the path `/slow` holds back. */
const held: (() => void)[] = []

beforeAll(async () => {
  server = await startReceiver({
    '/whole': taking(),
    '/lines': taking(),
    '/partial': partly,
    '/picky': taking((ids) => (ids.includes('bad') ? 422 : 200)),
    '/large': taking(),
    '/failing': taking((_, nth) => (nth === 1 ? 503 : 200)),
    '/slow': (request, response) => {
      held.push(() => taking()(request, response, 0))
    },
    '/paused': taking(),
  })
  const [port = 0] = await freePorts(1)
  example = spawn(process.execPath, ['examples/node/receive-batch.mjs'], {
    env: { WEBHOOK_SECRET: secret, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  example.stdout?.on('data', (chunk: Buffer) => {
    said += chunk.toString()
  })
  const signing = { sharedSecret: secret, signing: { standardWebhooks: true } }
  catalog = [
    to('whole', { ...signing, batch: { maxMessages: 10, maxWait: '5s' } }),
    to('lines', { ...signing, batch: { maxMessages: 10, maxWait: '5s', format: 'ndjson' } }),
    to('example', {
      sharedSecret: secret,
      hooks: [{ url: `http://127.0.0.1:${port}` }],
      batch: { maxMessages: 4, maxWait: '5s' },
    }),
    to('partial', { batch: { maxMessages: 6, maxWait: '5s' } }),
    to('picky', { batch: { maxMessages: 8, maxWait: '5s' } }),
    to('large', { batch: { maxBytes: 4_096, maxWait: '100ms' } }),
    to('failing', { batch: { maxMessages: 5, maxWait: '5s' } }),
    to('slow', { batch: { maxMessages: 10, maxWait: '100ms' } }),
    to('paused', { state: 'paused', batch: { maxMessages: 50, maxWait: '5s' } }),
  ]
  sluice = await deploy({
    destinations: catalog,
    variables: {
      SLUICE_RETRY_LADDER: '1s',
      SLUICE_RETRY_THEN: '1s',
      SLUICE_KAFKA_COMMIT_INTERVAL: '100ms',
      SLUICE_KAFKA_SESSION_TIMEOUT: '6s',
    },
  })
})

afterAll(async () => {
  example?.kill()
  await sluice?.stop()
  await server?.stop()
})

function to(id: string, rest: Partial<DestinationEntry> = {}): DestinationEntry {
  return { id, sources: [id], hooks: [{ id: 'main', url: `${server.origin}/${id}` }], ...rest }
}

/** Returns a script that accepts a batch, or answers with another status. */
function taking(statusOf: (ids: readonly string[], nth: number) => number = () => 200): Script {
  return (request, response, nth) => {
    const ids = idsOf(request)
    const status = statusOf(ids, nth)
    if (status === 200) accept(request.path, ids)
    answer(status)(request, response, nth)
  }
}

/** Accepts each message at its second try. */
const partly: Script = (request, response, nth) => {
  const ids = idsOf(request)
  const statuses = ids.map((id) => (nth > 1 || Number(id.split('-')[1]) % 2 === 0 ? 200 : 503))
  accept(
    request.path,
    ids.filter((_, at) => statuses[at] === 200),
  )
  answer(207, { 'Content-Type': 'application/json' }, JSON.stringify(statuses))(request, response, nth)
}

function accept(path: string, ids: readonly string[]): void {
  accepted.set(path, [...acceptedBy(path), ...ids])
}

function acceptedBy(path: string): readonly string[] {
  return accepted.get(path) ?? []
}

function idsOf({ body, headers }: Pick<ReceivedRequest, 'body' | 'headers'>): string[] {
  const text = body.toString()
  const list =
    headers['content-type'] === 'application/x-ndjson' ? `[${text.trim().replaceAll('\n', ',')}]` : text
  const messages: { messageId: string }[] = JSON.parse(list)
  return messages.map(({ messageId }) => messageId)
}

function sizesAt(path: string): number[] {
  return server.requestsTo(path).map((request) => idsOf(request).length)
}

function named(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${name}-${index}`)
}

/** Sends messages of one user, so that they are in one partition. */
async function send(source: string, ids: readonly string[], text = ''): Promise<void> {
  await sluice.send(
    source,
    ids.map((messageId) => ({
      key: 'user',
      value: { type: 'track', userId: 'user', event: 'Ping', messageId, properties: { text } },
    })),
  )
}

async function untilAccepted(path: string, ids: readonly string[]): Promise<void> {
  await until(`all came to ${path}`, () => ids.every((id) => acceptedBy(path).includes(id)))
}

test.each([
  ['whole', 'application/json'],
  ['lines', 'application/x-ndjson'],
])('messages to %s are sent as one request of %s, in their order and signed as a whole', async (id, type) => {
  const ids = named(id, 10)
  await send(id, ids)
  await untilAccepted(`/${id}`, ids)
  const [request, ...others] = server.requestsTo(`/${id}`)
  expect(others).toEqual([])
  if (request === undefined) throw new Error('nothing came')
  const { headers, body } = request
  expect(idsOf(request)).toEqual(ids)
  expect(headers['content-type']).toBe(type)
  expect(headers['webhook-id']).toMatch(/^batch_[\w-]{43}$/)
  expect(headers['x-sluice-message-id']).toBe(headers['webhook-id'])
  expect(headers['x-signature']).toBe(createHmac('sha1', secret).update(body).digest('hex'))
  const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const
  const signed = Object.fromEntries(names.map((name) => [name, String(headers[name])]))
  const verified = (): unknown => new Webhook(secret).verify(body.toString(), signed)
  // The package parses what it has verified, and lines are no JSON text.
  if (id === 'whole') expect(verified()).toHaveLength(10)
  else expect(verified).toThrow(SyntaxError)
})

test('the receiver of the examples verifies a batch, and settles each of its messages', async () => {
  const ids = named('example', 4)
  await send('example', ids.slice(0, 3))
  await sluice.send('example', [
    { key: 'user', value: { type: 'track', anonymousId: 'a', event: 'Ping', messageId: 'example-3' } },
  ])
  await until('three are accepted', () => ids.slice(0, 3).every((id) => said.includes(id)))
  await until('the other is a dead letter', async () =>
    (await sluice.read('dead-letters')).some(({ headers }) => String(headers['message-id']) === 'example-3'),
  )
  expect(said).not.toContain('example-3')
})

test('of a batch that is accepted in part, the rest is tried again, and nothing else', async () => {
  const ids = named('partial', 6)
  await send('partial', ids)
  await untilAccepted('/partial', ids)
  expect(acceptedBy('/partial').toSorted()).toEqual(ids)
  expect(sizesAt('/partial').slice(0, 1)).toEqual([6])
  expect(server.requestsTo('/partial').slice(1).flatMap(idsOf).toSorted()).toEqual(
    ids.filter((_, at) => at % 2 === 1),
  )
})

test('one bad message of a batch becomes a dead letter, and all others are delivered', async () => {
  const ids = named('picky', 8).with(5, 'bad')
  await send('picky', ids)
  await untilAccepted('/picky', ids.toSpliced(5, 1))
  await until('it is a dead letter', async () =>
    (await sluice.read('dead-letters')).some(({ headers }) => String(headers['message-id']) === 'bad'),
  )
  expect(acceptedBy('/picky').toSorted()).toEqual(ids.toSpliced(5, 1).toSorted())
  expect(sizesAt('/picky')).toEqual([8, 4, 4, 2, 1, 1, 2])
})

test('a message that is larger than a batch is sent alone', async () => {
  await send('large', named('before', 2))
  await send('large', ['large-0'], 'x'.repeat(20_000))
  await send('large', named('after', 2))
  await untilAccepted('/large', [...named('before', 2), 'large-0', ...named('after', 2)])
  const alone = server.requestsTo('/large').filter((request) => idsOf(request).includes('large-0'))
  expect(alone.map(idsOf)).toEqual([['large-0']])
})

test('a batch that fails is tried again with the same messages, and has the same id', async () => {
  const ids = named('failing', 5)
  await send('failing', ids)
  await untilAccepted('/failing', ids)
  const [first, second] = server.requestsTo('/failing')
  expect(second && idsOf(second)).toEqual(ids)
  expect(second?.headers['x-sluice-message-id']).toBe(first?.headers['x-sluice-message-id'])
  expect(second?.headers['x-sluice-attempt']).toBe('2')
})

test('what waited for a paused destination is sent in full batches, without a wait for more', async () => {
  const ids = named('paused', 120)
  await send('paused', ids)
  await until('all wait', async () => (await sluice.read('waiting')).length >= ids.length)
  catalog = catalog.map((one) => (one.id === 'paused' ? { ...one, state: 'on' } : one))
  sluice.recatalog(catalog)
  await untilAccepted('/paused', ids)
  expect(acceptedBy('/paused').toSorted()).toEqual(ids.toSorted())
  const sizes = sizesAt('/paused')
  expect(sizes.length).toBeLessThanOrEqual(8)
  expect(Math.max(...sizes)).toBeLessThanOrEqual(50)
})

test('a batch that still gathers when the worker is told to stop is left to the next one', async () => {
  const ids = named('gathering', 3)
  await send('whole', ids)
  const { tookMs } = await sluice.worker.terminate()
  expect(tookMs).toBeLessThan(20_000)
  expect(acceptedBy('/whole').filter((id) => ids.includes(id))).toEqual([])
  await sluice.restart()
  await untilAccepted('/whole', ids)
  expect(acceptedBy('/whole').filter((id) => ids.includes(id))).toEqual(ids)
})

test('a worker that is killed in the middle of batches loses no message', async () => {
  const ids = named('slow', 60)
  await send('slow', ids)
  await until('batches are in flight', () => held.length >= 2)
  for (const respond of held.splice(0, 1)) respond()
  await sluice.worker.kill()
  held.splice(0)
  await sluice.restart()
  await until(
    'all came',
    () => {
      for (const respond of held.splice(0)) respond()
      return ids.every((id) => acceptedBy('/slow').includes(id))
    },
    { timeoutMs: 60_000 },
  )
  // Those that were in flight when it was killed may come again, and no others.
  expect(acceptedBy('/slow').length).toBeLessThanOrEqual(2 * ids.length)
})
