import { type AudienceCustomer, createAudienceCustomer } from '../test/support/audience-customer.ts'
import { DeliveryLog, keyOf } from '../test/support/delivery-book.ts'
import { readJson } from '../test/support/post.ts'
import { Random } from '../test/support/random.ts'
import { type ReceivedRequest, type Receiver, type Script, startReceiver } from '../test/support/receiver.ts'
import type { Trust } from '../test/support/trust.ts'
import type { Try } from './evidence.ts'
import { type Destination, destinations, failingHook } from './fleet.ts'
import { createVerifier } from './signatures.ts'

/**
 * The customers' servers, one for HTTP and one for HTTPS. Each destination has a path on one of the servers.
 */
export type Endpoints = {
  http: Receiver
  https: Receiver
  /**
   * The requests for events and deletions that an endpoint accepted. The sender may be gone before it gets
   * the answer 200.
   */
  log: DeliveryLog
  /** The refused requests for events that an endpoint may accept later, by `destination/messageId`. */
  refused: ReadonlyMap<string, readonly Try[]>
  /** The number of accepted messages of all destinations, without repeats. */
  readonly distinct: number
  /** The number of all requests, including the refused ones. */
  readonly requests: number
  /** `destination/source/user` of each `delete` that an endpoint accepted. */
  deletes: ReadonlySet<string>
  signatures: { right: number; wrong: readonly string[] }
  /** The customers with audiences, by the id of their destination. */
  audiences: ReadonlyMap<string, AudienceCustomer>
  /**
   * Makes all endpoints accept everything from now on, except the `gone` endpoint and the second URL that
   * always fails.
   */
  recover(): void
  stop(): Promise<void>
}

/**
 * The longest time after a `delete` in which older values of its user may still arrive. A worker may be
 * paused for up to 3.5 s after it has started a request.
 */
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
  const audiences = createAudienceCustomers(seed)
  let requests = 0
  let isWell = false

  /**
   * Records the request as accepted. The script answers 200 after `delayMs`, unless the sender is gone by
   * then.
   */
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

  /** Records the request as refused. The script refuses it in one of several ways. */
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

/**
 * The behaviours of the customer `members`, which mishandles two requests in 17. The customer `campaigns` has
 * the default behaviours, and mishandles more than half of its requests.
 */
const mostlyWell = [...Array.from({ length: 15 }, () => 'well' as const), 'fails', 'fails but acts'] as const

/** Creates the customers with audiences, by the id of their destination. */
function createAudienceCustomers(seed: number): Map<string, AudienceCustomer> {
  const customers = new Map<string, AudienceCustomer>()
  for (const [index, { id, behaviour, isStandard }] of destinations.entries()) {
    if (behaviour !== 'audience') continue
    const behaviours = isStandard ? mostlyWell : undefined
    const customer = createAudienceCustomer({
      random: new Random(seed + 1_000 + index),
      mostBehindMs,
      ...(behaviours !== undefined && { behaviours }),
    })
    customers.set(id, customer)
  }
  return customers
}

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
