import { type AudienceCustomer, createAudienceCustomer } from '../test/support/audience-customer.ts'
import { DeliveryLog, keyOf } from '../test/support/delivery-book.ts'
import { readJson } from '../test/support/post.ts'
import { Random } from '../test/support/random.ts'
import { type ReceivedRequest, type Receiver, type Script, startReceiver } from '../test/support/receiver.ts'
import type { Trust } from '../test/support/trust.ts'
import type { Try } from './evidence.ts'
import { type Destination, destinations, failingHook } from './fleet.ts'
import { createVerifier } from './signatures.ts'

/** The customers' servers: one over HTTP and one over HTTPS, with a path for each destination. */
export type Endpoints = {
  http: Receiver
  https: Receiver
  /** What was taken of events and deletions: requests that were answered with 200, or were to be. */
  log: DeliveryLog
  /** Requests for events that were refused and may be taken later, by `destination/messageId`. */
  refused: ReadonlyMap<string, readonly Try[]>
  /** Messages that were taken for the first time, of all destinations together. */
  readonly distinct: number
  /** All requests, also those that were refused. */
  readonly requests: number
  /** `destination/source/user` of each `delete` that was taken. */
  deletes: ReadonlySet<string>
  signatures: { right: number; wrong: readonly string[] }
  /** By the id of their destination. */
  audiences: ReadonlyMap<string, AudienceCustomer>
  /** From now on all take everything, but the one that is gone. */
  recover(): void
  stop(): Promise<void>
}

/** What was sent before a `delete` and comes later than this is too late: a worker may be stopped for 4 s with a request in its hands. */
const mostBehindMs = 6_000
const failsOneIn = 4
const slowMs = { least: 200, most: 1_500 }
const fewFaults = 5

export async function startEndpoints(seed: number, trust: Trust): Promise<Endpoints> {
  const random = new Random(seed)
  const log = new DeliveryLog()
  const refused = new Map<string, Try[]>()
  const deletes = new Set<string>()
  const signatures = { right: 0, wrong: [] as string[] }
  const audiences = new Map<string, AudienceCustomer>()
  let requests = 0
  let isWell = false

  /** Answers 200 and takes note, unless the sender is gone. */
  function take({ id }: Destination, request: ReceivedRequest, delayMs = 0): Script {
    const { type, messageId, userId, context } = readJson(String(request.body))
    const delivery = log.note({
      destination: id,
      messageId: String(messageId),
      worker: String(request.headers['x-worker']),
    })
    if (type === 'delete') deletes.add(`${id}/${sourceIn(context)}/${String(userId)}`)
    return (_request, response) => {
      const accept = (): void => {
        if (response.destroyed) return
        delivery.isAnswered = true
        response.writeHead(200).end()
      }
      if (delayMs === 0) accept()
      else setTimeout(accept, delayMs)
    }
  }

  /** Refuses it in one of several ways, and takes note. */
  function turnDown({ id }: Destination, request: ReceivedRequest): Script {
    const key = keyOf(id, String(readJson(String(request.body))['messageId']))
    const tries = refused.get(key) ?? []
    refused.set(key, tries)
    tries.push({ worker: String(request.headers['x-worker']), arrivedMs: Date.now() })
    return random.pick(refusals)
  }

  function scriptFor(destination: Destination, request: ReceivedRequest): Script {
    switch (destination.behaviour) {
      case 'healthy':
        return take(destination, request)
      case 'slow':
        return take(destination, request, slowMs.least + random.below(slowMs.most - slowMs.least))
      case 'failing':
        return !isWell && random.oneIn(failsOneIn)
          ? turnDown(destination, request)
          : take(destination, request)
      case 'dead':
        return isWell ? take(destination, request) : never
      case 'gone':
        return refuse(404)
      case 'audience':
        return audienceOf(destination).script
    }
  }

  function audienceOf({ id }: Destination): AudienceCustomer {
    const known = audiences.get(id)
    if (known === undefined) throw new Error(`${id} is told of no audience`)
    return known
  }

  const verifiers = new Map(destinations.map((one) => [one.id, createVerifier(one)]))
  const script: Script = (request, response, nth) => {
    requests++
    const path = request.path.slice(1)
    const destination = destinations.find(({ id, hasFailingHook }) =>
      path === failingHook ? hasFailingHook : id === path,
    )
    if (destination === undefined) return refuse(404)(request, response, nth)
    const fault = verifiers.get(destination.id)?.(request.body, request.headers)
    if (fault === undefined) signatures.right++
    else if (signatures.wrong.length < fewFaults) signatures.wrong.push(`${path}: ${fault}`)
    const answer = path === failingHook ? refuse(500) : scriptFor(destination, request)
    answer(request, response, nth)
  }

  for (const [index, { id, behaviour, isStandard }] of destinations.entries()) {
    if (behaviour !== 'audience') continue
    const behaviours = isStandard ? mostlyWell : undefined
    const customer = createAudienceCustomer({
      random: new Random(seed + 1_000 + index),
      mostBehindMs,
      ...(behaviours !== undefined && { behaviours }),
    })
    audiences.set(id, customer)
  }
  const http = await startReceiver(script, { isKept: false })
  const https = await startReceiver(script, { ...trust.secured, isKept: false })
  return {
    http,
    https,
    log,
    refused,
    get distinct() {
      return log.deliveries.size
    },
    get requests() {
      return requests
    },
    deletes,
    signatures,
    audiences,
    recover() {
      isWell = true
      for (const customer of audiences.values()) customer.recover()
    },
    async stop() {
      await Promise.all([http.stop(), https.stop()])
    },
  }
}

/** The other customer of audiences does half of all wrong. */
const mostlyWell = [...Array.from({ length: 15 }, () => 'well' as const), 'fails', 'fails but acts'] as const

const never: Script = () => {}
const refuse =
  (status: number, headers: Record<string, string> = {}): Script =>
  (_request, response) =>
    response.writeHead(status, headers).end()
const refusals: readonly Script[] = [
  refuse(500),
  refuse(503),
  refuse(429, { 'Retry-After': '1' }),
  (_request, response) => response.destroy(),
]

function sourceIn(context: unknown): string {
  return typeof context === 'object' && context !== null && 'sourceId' in context
    ? String(context.sourceId)
    : ''
}
