import { createHmac } from 'node:crypto'
import { expect } from 'vitest'
import { parseCatalog } from '../../src/catalog/parse.ts'
import type { BreakerOptions } from '../../src/delivery/lanes/breaker.ts'
import { Bulkhead } from '../../src/delivery/lanes/bulkhead.ts'
import { roomyBulkhead } from './bulkhead.ts'
import { createAddressPolicy } from '../../src/address/policy.ts'
import { createEndpoints, type DestinationDefinition } from '../../src/delivery/endpoint.ts'
import type { Outcome } from '../../src/delivery/outcomes/outcome.ts'
import { createSender } from '../../src/delivery/send/sender.ts'
import { webhookIdOf } from '../../src/delivery/signature.ts'
import { Attempt } from '../../src/pipeline/attempt.ts'
import type { HookResult } from '../../src/pipeline/decision.ts'
import { answer, type ReceivedRequest, startReceiver } from './receiver.ts'

/**
 * Trials of hooks that customers may write, well or to do harm. The catalog checks each hook. The real sender
 * sends to it even if the catalog refuses it.
 */

/** A hook as a customer wrote it, and the id of a message that is sent to it. */
export type Trial = {
  url: string
  headers: readonly (readonly [name: string, value: string])[]
  messageId: string
}

export type TrialReport = {
  /**
   * `taken` and `refused`: the catalog accepts or refuses the hook. `elsewhere`: the catalog accepts the
   * hook, but the hook leads to another server. Then nothing is sent.
   */
  kind: 'taken' | 'refused' | 'elsewhere'
  /**
   * The hook's path as the catalog returns it. If the catalog refuses the hook, this is the path as written.
   */
  path: string
  outcome: Outcome | undefined
  /**
   * The requests that have come to the server by the time of the outcome. `connections` is the number of new
   * connections by then.
   */
  requests: readonly ReceivedRequest[]
  connections: number
  /**
   * The outcome of a good request right after the trial's request, with the same connections. That request
   * has 1 s to succeed.
   */
  outcomeAfter: Outcome | undefined
}

export type Trials = {
  /** The server's origin (`http://127.0.0.1:PORT`). The URLs of trials should lead there. */
  origin: string
  port: number
  run(trial: Trial): Promise<TrialReport>
  stop(): Promise<void>
}

const secret = 'the secret of all trials'
const body = '{"type":"track","event":"é"}'

const allowedMs = 1_000
const messageIdAfter = 'after'

export async function startTrials(): Promise<Trials> {
  const server = await startReceiver(answer(200))
  const sender = createSender({
    policy: createAddressPolicy(['127.0.0.1']),
    timeoutMs: allowedMs,
    poolIdleMs: 300,
  })
  const endpoints = createEndpoints({ breaker, shareOfGroup: () => 1, isNamed: true })
  const bulkhead = new Bulkhead(roomyBulkhead)
  const good = definitionAsWritten({ url: `${server.origin}/good`, headers: [], messageId: '' })

  async function attempt(definition: DestinationDefinition, messageId: string): Promise<Outcome | undefined> {
    const endpoint = endpoints.of(definition)
    const released = Promise.withResolvers<void>()
    let results: readonly HookResult[] = []
    new Attempt({
      sender,
      endpoint,
      bulkhead,
      hooks: endpoint.hooks,
      sick: [],
      withoutLogin: [],
      now: Date.now,
      tryClass: 'first',
      isForAll: true,
      delivery: {
        messageId,
        attempts: 1,
        body: Buffer.from(body),
        isAbandoned: false,
        replayJob: '',
        key: null,
      },
      startedMs: Date.now(),
      listener: {
        begun() {},
        isCurrent: () => true,
        answered() {},
        cameLate() {},
        omitted() {},
        freed() {},
        mayGoOn: () => false,
        isUnitStopped: () => false,
        concluded(_delivery, _endpoint, attempted) {
          results = attempted.results
        },
        ended: () => released.resolve(),
      },
    }).start()
    await released.promise
    return results[0]?.outcome
  }

  return {
    origin: server.origin,
    port: server.port,
    async run(trial) {
      const taken = definitionByCatalog(trial)
      const definition = taken ?? definitionAsWritten(trial)
      const [hook] = definition.hooks
      const path = hook?.path ?? ''
      if (taken !== undefined && hook?.origin !== server.origin)
        return { kind: 'elsewhere', path, ...nothing }
      const before = { requests: server.requests.length, connections: server.connections }
      const outcome = await attempt(definition, trial.messageId)
      const requests = server.requests.slice(before.requests)
      const connections = server.connections - before.connections
      const outcomeAfter =
        taken === undefined ? await attempt(good, messageIdAfter) : await attempt(definition, messageIdAfter)
      const kind = taken === undefined ? 'refused' : 'taken'
      return { kind, path, outcome, requests, connections, outcomeAfter }
    },
    async stop() {
      await sender.close()
      bulkhead.stop()
      await server.stop()
    },
  }
}

/** The headers that every request has in addition to the headers of its hook, and to `accept`. */
const ownHeaders = [
  'connection',
  'content-length',
  'content-type',
  'host',
  'user-agent',
  'webhook-id',
  'webhook-signature',
  'webhook-timestamp',
  'x-signature',
  'x-sluice-attempt',
  'x-sluice-message-id',
]

/**
 * Expects that the request of an accepted hook arrives as intended, that a refused hook causes no connection,
 * and that the next request succeeds in both cases.
 */
export function expectHarmless({ origin }: Trials, trial: Trial, report: TrialReport): void {
  if (report.kind === 'elsewhere') return
  expect(report.outcomeAfter).toEqual({ kind: 'answer', status: 200 })
  if (report.kind === 'refused') {
    expect(report).toMatchObject({ outcome: { kind: 'request' }, requests: [], connections: 0 })
    return
  }
  expect(report.outcome).toEqual({ kind: 'answer', status: 200 })
  expect(report.requests).toHaveLength(1)
  for (const request of report.requests) expectAsMeant(request, trial, { origin, path: report.path })
}

/** Expects that the request has all bytes and headers that were chosen, and no other header. */
function expectAsMeant(
  request: ReceivedRequest,
  { headers, messageId }: Trial,
  { origin, path }: { origin: string; path: string },
): void {
  expect(request.method).toBe('POST')
  expect(request.path).toBe(path)
  expect(request.body.toString()).toBe(body)
  const received = pairsOf(request.rawHeaders)
  const chosen = headers.map(([name]) => name.toLowerCase())
  const accept = chosen.includes('accept') ? [] : ['accept']
  expect(received.map(([name]) => name.toLowerCase()).toSorted()).toEqual(
    [...ownHeaders, ...accept, ...chosen].toSorted(),
  )
  expect(received).toEqual(expect.arrayContaining([...headers]))
  expect(request.headers).toMatchObject({
    host: origin.replace('http://', ''),
    'content-type': 'application/json',
    'x-signature': createHmac('sha1', secret).update(body).digest('hex'),
    'webhook-id': webhookIdOf(messageId),
  })
}

function pairsOf(rawHeaders: readonly string[]): (readonly [name: string, value: string])[] {
  return rawHeaders.flatMap((name, index) => (index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? '']] : []))
}

const nothing = { outcome: undefined, requests: [], connections: 0, outcomeAfter: undefined }

const breaker: BreakerOptions = {
  failureShare: 0.5,
  minResults: 10,
  windowMs: 10_000,
  openMs: 5_000,
  maxOpenMs: 60_000,
}

/**
 * Returns the destination that the catalog makes of the hook. Returns `undefined` if the catalog refuses the
 * hook.
 */
function definitionByCatalog({ url, headers }: Trial): DestinationDefinition | undefined {
  const hook = {
    id: 'hook',
    url,
    headers: Object.fromEntries(headers.map(([name, value]) => [name, verbatim(value)])),
  }
  const destination = { id: 'crm', sources: [], sharedSecret: secret, hooks: [hook] }
  const text = JSON.stringify({
    sources: [],
    destinations: [{ ...destination, signing: { standardWebhooks: true } }],
  })
  const parsed = parseCatalog(text, { file: 'catalog.yaml' })
  return parsed.ok ? parsed.catalog.destinations.get('crm') : undefined
}

/** Escapes each `${`. So the catalog takes it as text, and reads no variable. */
function verbatim(value: string): string {
  return value.replaceAll('${', () => '$${')
}

/** Returns a destination with the hook as it was written, without the catalog's checks. */
function definitionAsWritten({ url, headers }: Trial): DestinationDefinition {
  const [, origin = '', path = ''] = /^([^/]*\/\/[^/?#]*)?(.*)$/s.exec(url) ?? []
  return {
    id: 'crm',
    state: 'on',
    filter: undefined,
    sharedSecret: secret,
    nextSharedSecret: undefined,
    standardWebhooks: true,
    strategy: 'all',
    maxInFlight: 64,
    rateLimit: undefined,
    hooks: [{ id: 'hook', origin, path, headers }],
  }
}
