import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { selfSigned } from '../../support/certificates.ts'
import {
  answer,
  neverAnswer,
  type RawReceiver,
  type Receiver,
  type Script,
  startRawReceiver,
  startReceiver,
} from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { runSluice, writeCatalog } from '../../support/worker-process.ts'
import { type Deployment, type DestinationEntry, deploy } from './deployment.ts'

/**
 * Tests of a worker whose catalog has a secret in every place where one is possible. The worker gets into all
 * kinds of trouble, at its most detailed log level. None of the secrets may be in its output.
 */

const hidden: string[] = []

/** Makes a secret that must not be in any output. */
function secret(of: string): string {
  const made = `${of}-${randomUUID()}`
  hidden.push(made)
  return made
}

const behaviours: Record<string, Script> = {
  delivered: answer(200),
  missing: answer(404),
  failing: answer(500),
  throttled: answer(429, { 'retry-after': '1' }),
  hung: neverAnswer,
  moved: answer(302, { location: 'http://127.0.0.1:2/' }),
}

/** Answers by the first part of the path. The rest of the path and the query are secret. */
const behave: Script = (request, response, nth) =>
  behaviours[/^\/(\w+)/.exec(request.path)?.[1] ?? '']?.(request, response, nth)

let receivers: { plain: Receiver; untrusted: Receiver; broken: RawReceiver; reset: RawReceiver }
let sluice: Deployment
let destinations: readonly DestinationEntry[]
let metrics = ''
let exitCode: number | null

function destination(id: string, origin: string, rest: Partial<DestinationEntry> = {}): DestinationEntry {
  return {
    id,
    sources: ['shop'],
    sharedSecret: secret('shared'),
    nextSharedSecret: secret('next'),
    signing: { standardWebhooks: true },
    hooks: [
      {
        url: `${origin}/${id}/${secret('path')}?token=${secret('query')}&a=b`,
        headers: { Authorization: `Bearer ${secret('bearer')}`, 'X-Api-Key': secret('key') },
      },
    ],
    ...rest,
  }
}

/** Returns destinations with every fault that involves a secret. */
function faultyDestinations(): object[] {
  const hooks = [
    { url: `http://me:${secret('password')}@example.com/?token=${secret('query')}` },
    { url: `https://example.com:25/?token=${secret('query')}` },
    { url: `https://example.com/?token=${secret('query')} #a` },
    {
      url: 'https://example.com/',
      headers: { 'X-Key': `${secret('key')}\n`, 'X-Other': `${secret('key')}€` },
    },
    {
      url: 'https://example.com/a',
      headers: { [`Authorization: Bearer ${secret('bearer')}`]: '', Host: secret('key') },
    },
  ]
  const signing = { standardWebhooks: true }
  return [
    { id: 'a', sources: [], sharedSecret: `whsec_${secret('shared')}`, signing, hooks },
    {
      id: 'b',
      sources: [],
      sharedSecret: `${secret('shared')} `,
      hooks: [`https://a/?token=${secret('query')}`],
    },
    { id: 'c', sources: [], nextSharedSecret: secret('next'), hooks: { url: secret('query') } },
  ]
}

const messageCount = 3

beforeAll(async () => {
  receivers = {
    plain: await startReceiver(behave),
    untrusted: await startReceiver(answer(200), { identity: selfSigned({ names: ['127.0.0.1'] }) }),
    broken: await startRawReceiver({ data: (socket) => socket.end('SSH-2.0\r\n') }),
    reset: await startRawReceiver({ data: (socket) => socket.resetAndDestroy() }),
  }
  const { plain, untrusted, broken, reset } = receivers
  destinations = [
    ...Object.keys(behaviours).map((id) => destination(id, plain.origin)),
    destination('untrusted', untrusted.origin),
    destination('broken', broken.origin),
    destination('reset', reset.origin),
    destination('closed', 'http://127.0.0.1:2'),
    destination('nowhere', 'http://nowhere.invalid'),
  ]
  sluice = await deploy({
    destinations,
    variables: {
      SLUICE_LOG_LEVEL: 'trace',
      SLUICE_METRICS_PER_DESTINATION: 'true',
      SLUICE_DELIVERY_TIMEOUT: '1s',
      SLUICE_RETRY_LADDER: '1s',
      SLUICE_RETRY_THEN: '1s',
      SLUICE_RETRY_LIMIT: '3s',
    },
  })
  const messages = Array.from({ length: messageCount }, (_, i) => ({
    key: 'u1',
    value: { type: 'track', userId: 'u1', event: secret('event'), messageId: `m-${i}` },
  }))
  await sluice.send('shop', messages)
  await until('each delivery has come to its end', async () => {
    return (await sluice.worker.metric('sluice_deliveries_total')) === destinations.length * messageCount
  })
  sluice.rewriteCatalog({ sources: [{ id: 'shop' }], destinations: faultyDestinations() })
  await until(
    'the faulty edit is refused',
    async () => (await sluice.worker.metric('sluice_catalog_refused')) === 1,
  )
  metrics = await sluice.worker.metrics()
  ;({ code: exitCode } = await sluice.worker.terminate())
})

afterAll(async () => {
  await sluice?.stop()
  for (const receiver of Object.values(receivers ?? {})) await receiver.stop()
})

/** Returns the secrets that a text contains. */
function seenIn(text: string): string[] {
  return hidden.filter((one) => text.includes(one))
}

test('the worker has sent the secrets that it was to send', () => {
  const [request] = receivers.plain.requests
  expect(seenIn(JSON.stringify([request?.path, request?.headers]))).toHaveLength(4)
  expect(hidden.length).toBeGreaterThan(50)
})

describe('no secret of a header, a URL or a signature, and nothing of a body, is', () => {
  test('in the log', () => {
    const log = sluice.worker.log.map((line) => JSON.stringify(line)).join('\n')
    const outcomes = new Set(sluice.worker.log.map(({ outcome }) => outcome))
    // The log has lines of all these kinds, so it had enough chances to show a secret.
    expect([...outcomes]).toEqual(expect.arrayContaining(['answer', 'timeout', 'connection', 'certificate']))
    expect(log).toContain('the catalog file has faults')
    expect(seenIn(log)).toEqual([])
  })

  test('on standard error', () => {
    expect(exitCode).toBe(0)
    expect(seenIn(sluice.worker.stderr)).toEqual([])
  })

  test('in the metrics', () => {
    expect(metrics).toContain('destination="delivered"')
    expect(seenIn(metrics)).toEqual([])
  })

  test('in the headers of records that wait or are dead', async () => {
    const tiers = ['retry.1s', 'dead-letters']
    for (const tier of tiers) {
      const records = await sluice.read(tier)
      expect(records.length).toBeGreaterThan(0)
      expect(seenIn(JSON.stringify(records.map(({ headers }) => headers)))).toEqual([])
    }
  })
})

test('a catalog that is refused at the start is refused without showing a secret', async () => {
  const catalog = writeCatalog({ sources: [], destinations: faultyDestinations() })
  try {
    const variables = { SLUICE_CATALOG_FILE: catalog.path, SLUICE_KAFKA_BROKERS: '127.0.0.1:2' }
    const { stdout, stderr } = await runSluice(['worker'], variables, { expectedCode: 1 })
    expect(stderr + stdout).toContain('The catalog')
    expect(stderr + stdout).toContain('destinations[0].hooks[0].url')
    expect(seenIn(stderr + stdout)).toEqual([])
  } finally {
    catalog.remove()
  }
})
