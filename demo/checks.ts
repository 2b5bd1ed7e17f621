import { isDeepStrictEqual } from 'node:util'
import { expectedOfAudience } from './audience.ts'
import type { Customer, Customers } from './customers.ts'
import type { DeadLetter } from './kafka.ts'
import { kinds, type PlannedMessage, type PlannedRecord } from './messages.ts'
import type { Metrics } from './metrics.ts'
import {
  bigSpenders,
  type Destination,
  type DestinationId,
  destinations,
  ladder,
  retryAfterSeconds,
} from './script.ts'

/** All facts that the checks use. They are collected at the end of the demo. */
export type Evidence = {
  records: readonly PlannedRecord[]
  customers: Customers
  deadLetters: readonly DeadLetter[]
  /** The number of records above the group's committed offsets, by topic. */
  left: ReadonlyMap<string, number>
  /** The worker's metrics. */
  metrics: Metrics
  gatewayMetrics: Metrics
  /** The number of requests that the server of `partner` had received when `partner` was switched on. */
  partnerRequestsWhilePaused: number
  /** The number of the change of the catalog that switched `partner` on. 0: there was none. */
  partnerChange: number
}

export type Check = {
  about: string
  found: string
  /** The differences from what was expected. It is empty if the check has passed. */
  faults: readonly string[]
}

/** Time by which a retry may be too early. The broker's clock may differ from ours, for example in Docker. */
const clockToleranceMs = 250

/** Compares all arrived messages with the planned records and the audience's steps. */
export function runChecks(evidence: Evidence): Check[] {
  return [
    ...destinations.map((destination) => checkDestination(evidence, destination)),
    checkGateway(evidence),
    checkSignatures(evidence),
    checkRequests(evidence),
    checkKinds(evidence),
    checkFiltered(evidence),
    checkRefused(evidence),
    checkLeft(evidence),
    checkMetrics(evidence),
  ]
}

function checkDestination(evidence: Evidence, destination: Destination & { id: DestinationId }): Check {
  const customer = customerOf(evidence, destination.id)
  if (destination.end === 'told_of_audience') return checkAudience(evidence, customer)
  const expected = messagesFor(evidence, destination)
  return destination.end === 'delivered'
    ? checkDelivered(evidence, customer, expected)
    : checkDead(evidence, customer, expected, destination.end)
}

function checkDelivered(evidence: Evidence, customer: Customer, expected: readonly Sent[]): Check {
  const { arrivals } = customer.receiver
  const faults: string[] = []
  let intact = 0
  for (const { message, way } of expected) {
    const arrival = arrivals.get(message.messageId)
    if (arrival === undefined) faults.push(`${message.messageId} is missing`)
    else if (arrival.accepted !== 1)
      faults.push(`${message.messageId} was accepted ${arrival.accepted} times`)
    else if (!keeps(arrival.body, message, way)) faults.push(`${message.messageId} was changed on its way`)
    else intact++
  }
  if (arrivals.size > expected.length) faults.push(`${arrivals.size - expected.length} messages of others`)
  const deadToo = lettersOf(evidence, customer.id).length
  if (deadToo > 0) faults.push(`${deadToo} dead letters`)
  const how = howDelivered(evidence, customer, expected)
  return {
    about: customer.id,
    found: `${intact} of ${expected.length} arrived once each${how.found}`,
    faults: [...faults, ...how.faults],
  }
}

/** Checks that each user got exactly the Identifies that the steps require, in order. */
function checkAudience(evidence: Evidence, { id, receiver }: Customer): Check {
  const steps = expectedOfAudience()
  const faults: string[] = []
  const got = new Map<string, unknown[]>()
  for (const [messageId, { body, accepted }] of receiver.arrivals) {
    const user = String(body['userId'])
    got.set(user, [...(got.get(user) ?? []), body['traits']])
    if (body['type'] !== 'identify') faults.push(`${messageId} is no Identify`)
    if (accepted !== 1) faults.push(`${messageId} was accepted ${accepted} times`)
  }
  const wanted = new Map<string, unknown[]>()
  for (const [user, member] of steps.flatMap((step) => [...step])) {
    wanted.set(user, [...(wanted.get(user) ?? []), { [bigSpenders.property]: member }])
  }
  for (const user of new Set([...wanted.keys(), ...got.keys()])) {
    const [due, found] = [wanted.get(user) ?? [], got.get(user) ?? []]
    if (!isDeepStrictEqual(due, found))
      faults.push(`${user} should be ${JSON.stringify(due)}, and is ${JSON.stringify(found)}`)
  }
  const deadToo = lettersOf(evidence, id).length
  if (deadToo > 0) faults.push(`${deadToo} dead letters`)
  const [created = 0, changed = 0, synced = 0] = steps.map(({ size }) => size)
  return {
    about: id,
    found: `${receiver.arrivals.size} Identifies with ${bigSpenders.property}: ${created} by the first sync, ${changed} by changes, ${synced} by the next sync`,
    faults,
  }
}

/** Checks the properties that only this destination has, such as the failing URL of `warehouse`. */
function howDelivered(
  evidence: Evidence,
  customer: Customer,
  expected: readonly Sent[],
): { found: string; faults: string[] } {
  const { receiver, failing, id } = customer
  const faults: string[] = []
  const require = (isSo: boolean, fault: string): void => {
    if (!isSo) faults.push(fault)
  }
  switch (id) {
    case 'crm':
      return { found: ', with every field as it was written', faults }
    case 'warehouse': {
      const got = expected.filter(({ message: { messageId } }) => failing?.arrivals.has(messageId)).length
      const requests = failing?.requests ?? 0
      require(got === expected.length, `its other URL, which answers 500, got but ${got} of them`)
      require(requests === got, `its other URL got ${requests} requests for ${got} messages`)
      return {
        found: `; its other URL answers 500, and got ${got} of ${expected.length} once each too`,
        faults,
      }
    }
    case 'archive': {
      const { absent } = receiver.signatures
      require(absent === receiver.requests, `${receiver.requests - absent} requests were signed`)
      return { found: ', without X-Signature', faults }
    }
    case 'mailer': {
      const refused = receiver.requests - receiver.arrivals.size
      require(refused > 0, 'nothing was tried while it was down')
      // Its first success calls the others back before their rung ends.
      const soonest = soonestRetry(customer, 0, faults)
      return { found: `; ${refused} × 503 first, retries after ${soonest} or more`, faults }
    }
    case 'ads': {
      const wrong = [...receiver.arrivals.values()].filter(({ atMs }) => atMs.length !== 2).length
      require(wrong === 0, `${wrong} messages were not sent twice`)
      const soonest = soonestRetry(customer, retryAfterSeconds, faults)
      return { found: `; 429 with Retry-After: 5 first, kept to (${soonest})`, faults }
    }
    case 'partner': {
      const early = evidence.partnerRequestsWhilePaused
      require(early === 0, `${early} requests came while it was paused`)
      require(evidence.partnerChange > 0, 'the admin API did not switch it on')
      return { found: `; ${early} requests while it was paused, until a PATCH of the admin API`, faults }
    }
    case 'campaigns':
    case 'erp':
    case 'legacy':
    case 'oldsite':
      return { found: '', faults: ['should not have got anything'] }
  }
}

function soonestRetry({ receiver }: Customer, seconds: number, faults: string[]): string {
  const { soonestRepeatMs } = receiver
  const text = `${(soonestRepeatMs / 1000).toFixed(1)} s`
  if (soonestRepeatMs < seconds * 1000 - clockToleranceMs) faults.push(`a retry came after ${text} already`)
  return text
}

function checkDead(evidence: Evidence, customer: Customer, expected: readonly Sent[], reason: string): Check {
  const letters = lettersOf(evidence, customer.id)
  const faults: string[] = []
  const byId = new Map(letters.map((letter) => [letter['message-id'], letter]))
  const right = expected.filter(({ message: { messageId } }) => {
    const found = byId.get(messageId)?.['reason']
    if (found !== reason) faults.push(`${messageId}: ${found ?? 'no dead letter'}`)
    return found === reason
  }).length
  if (letters.length !== expected.length) faults.push(`${letters.length} dead letters in all`)
  const how = howDead(evidence, customer, letters)
  return {
    about: customer.id,
    found: `${right} of ${expected.length} are dead letters (${reason})${how.found}`,
    faults: [...faults, ...how.faults],
  }
}

function howDead(
  { customers }: Evidence,
  { id, receiver }: Customer,
  letters: readonly DeadLetter[],
): { found: string; faults: string[] } {
  const faults: string[] = []
  const tries = [...receiver.arrivals.values()].map(({ atMs }) => atMs)
  switch (id) {
    case 'erp': {
      const spanMs = Math.max(...tries.map((atMs) => (atMs.at(-1) ?? 0) - (atMs[0] ?? 0)))
      const made = tries.reduce((sum, { length }) => sum + length, 0)
      const carried = letters.reduce((sum, letter) => sum + Number(letter['attempts']), 0)
      // The ladder brings each message back three or four times. Requests to failing URLs are few here, so each
      // message gets every try, although the breaker is open.
      const untried = letters.length - tries.length
      const once = tries.filter(({ length }) => length < 2).length
      if (untried > 0) faults.push(`${untried} messages were never tried`)
      if (once > letters.length * 0.2) faults.push(`${once} messages had but one try`)
      if (made < letters.length * 2.5)
        faults.push(`${made} requests: while they are few, each message gets every try`)
      if (spanMs > ladder.limit * 1000) faults.push(`a try came ${spanMs} ms after the first`)
      if (made !== carried) faults.push(`the dead letters say ${carried} tries, the server saw ${made}`)
      return { found: `; ${made} tries in all: while they are few, each message gets every try`, faults }
    }
    case 'legacy': {
      const { handshakes, requestBytes } = customers.refusing
      if (handshakes === 0) faults.push('nobody connected to it')
      if (requestBytes > 0 || receiver.requests > 0) faults.push(`it saw ${requestBytes} bytes of requests`)
      const others = letters.filter(
        (letter) => letter['last-outcome'] !== 'certificate DEPTH_ZERO_SELF_SIGNED_CERT',
      )
      if (others.length > 0)
        faults.push(`${others.length} failed in another way: ${others[0]?.['last-outcome']}`)
      return { found: `; ${requestBytes} bytes of a request sent`, faults }
    }
    case 'oldsite': {
      const wrong = tries.filter(({ length }) => length !== 1).length
      if (wrong > 0) faults.push(`${wrong} messages were sent again after 404`)
      return { found: ', after one request each', faults }
    }
    default:
      return { found: '', faults }
  }
}

/** Checks by the gateway's own metrics that all messages that clients sent to it are in Kafka. */
function checkGateway({ records, gatewayMetrics }: Evidence): Check {
  const sent = records.filter(({ way }) => way === 'gateway').length
  const acknowledged = gatewayMetrics.sum('sluice_gateway_messages_total')
  const leftOut = gatewayMetrics.sum('sluice_gateway_left_out_total')
  const requests = gatewayMetrics.sum('sluice_gateway_requests_total', { call: 'batch', status: '200' })
  const faults: string[] = []
  // `acknowledged` may be higher than `sent`: a client that gets no answer in time sends the message again.
  if (acknowledged < sent) faults.push(`${sent - acknowledged} messages are not in Kafka`)
  if (leftOut > 0) faults.push(`${leftOut} messages were left out`)
  return {
    about: 'gateway',
    found: `${sent} messages of Segment's client, in ${requests} requests: ${acknowledged} acknowledged by Kafka`,
    faults,
  }
}

function checkSignatures({ customers }: Evidence): Check {
  let right = 0
  let asked = 0
  for (const { secret, receiver } of customers.all.values()) {
    if (secret === undefined) continue
    right += receiver.signatures.right
    asked += receiver.requests
  }
  return {
    about: 'signatures',
    found: `${right} of ${asked} verified: parse, stringify, HMAC-SHA1, compare`,
    faults: right === asked && right > 0 ? [] : [`${asked - right} are wrong or missing`],
  }
}

function checkRequests({ customers }: Evidence): Check {
  const receivers = [...customers.all.values()].map(({ receiver }) => receiver)
  const total = receivers.reduce((sum, { requests }) => sum + requests, 0)
  return {
    about: 'requests',
    found: `${total} examined: User-Agent, Content-Type, custom header, shape of the body`,
    faults: receivers.flatMap(({ faults }) => faults),
  }
}

function checkKinds(evidence: Evidence): Check {
  const { receiver } = customerOf(evidence, 'crm')
  const arrived = tally([...receiver.arrivals.values()].map(({ body }) => String(body['type'])))
  const written = tally(
    evidence.records.flatMap(({ fate }) => (fate.kind === 'routed' ? [fate.message.type] : [])),
  )
  return {
    about: 'seven kinds',
    found: kinds.map((kind) => `${kind} ${arrived.get(kind) ?? 0}`).join(', '),
    faults: kinds
      .filter((kind) => arrived.get(kind) !== written.get(kind) || !arrived.has(kind))
      .map((kind) => `${written.get(kind) ?? 0} of kind ${kind} were written`),
  }
}

function checkFiltered({ records, customers }: Evidence): Check {
  const ids = records.flatMap(({ fate }) => (fate.kind === 'filtered' ? [fate.message.messageId] : []))
  const got = [...customers.all.values()].filter(({ receiver }) =>
    ids.some((id) => receiver.arrivals.has(id)),
  )
  return {
    about: 'integrations',
    found: `${ids.length} messages that switch webhooks off went to ${got.length === 0 ? 'nobody' : 'somebody'}`,
    faults: got.map(({ id }) => `${id} got one`),
  }
}

function checkRefused({ records, deadLetters }: Evidence): Check {
  const wanted = tally(records.flatMap(({ fate }) => (fate.kind === 'refused' ? [fate.reason] : [])))
  const ofNobody = deadLetters.filter((letter) => letter['destination-id'] === undefined)
  const found = tally(ofNobody.map((letter) => String(letter['reason'])))
  const shown = [...wanted.keys()].map((reason) => `${reason} ${found.get(reason) ?? 0}`)
  return {
    about: 'bad records',
    found: `dead letters: ${shown.join(', ')}`,
    faults: isDeepStrictEqual(found, wanted)
      ? []
      : [`expected ${describe(wanted)}; found ${describe(found)}`],
  }
}

function checkLeft({ left }: Evidence): Check {
  const shown = [...left].map(([topic, count]) => `${topic.slice(topic.indexOf('.') + 1)} ${count}`)
  return {
    about: 'left in Kafka',
    found: shown.join(', '),
    faults: [...left].filter(([, count]) => count !== 0).map(([topic, count]) => `${count} in ${topic}`),
  }
}

/** Compares the worker's counts with the servers' accepted requests and the topic's dead letters. */
function checkMetrics({ metrics, customers, deadLetters }: Evidence): Check {
  let accepted = 0
  for (const { receiver } of customers.all.values()) {
    for (const arrival of receiver.arrivals.values()) accepted += arrival.accepted
  }
  const delivered = metrics.sum('sluice_deliveries_total', { verdict: 'delivered' })
  const dead = metrics.sum('sluice_dead_letters_total')
  const faults: string[] = []
  if (delivered !== accepted) faults.push('delivered and accepted differ')
  if (dead !== deadLetters.length) faults.push('dead letters counted and on the topic differ')
  return {
    about: 'metrics',
    found: `worker: ${delivered} delivered, ${dead} dead; servers: ${accepted} accepted; topic: ${deadLetters.length}`,
    faults,
  }
}

type Sent = { message: PlannedMessage; way: PlannedRecord['way'] }

function messagesFor({ records }: Evidence, { sources }: Destination): Sent[] {
  return records.flatMap(({ fate, way }) =>
    fate.kind === 'routed' && sources.includes(fate.sourceId) ? [{ message: fate.message, way }] : [],
  )
}

/** Returns true if the body has all fields as sent, or `changedByGateway`. Others may be added. */
function keeps(
  body: Readonly<Record<string, unknown>>,
  message: PlannedMessage,
  way: PlannedRecord['way'],
): boolean {
  const sent: Readonly<Record<string, unknown>> = JSON.parse(JSON.stringify(message))
  const due = way === 'topic' ? sent : { ...sent, ...changedByGateway(body, message) }
  return isDeepStrictEqual({ ...body, ...due }, body)
}

/** Returns the fields that Segment's client (`context`) and the gateway (`timestamp`) change or add. */
function changedByGateway(
  { context, receivedAt, sentAt }: Readonly<Record<string, unknown>>,
  message: PlannedMessage,
): Record<string, unknown> {
  // The gateway corrects `timestamp` by the error of the client's clock, if that is clearly wrong.
  const aheadMs = timeOf(sentAt) - timeOf(receivedAt)
  const happenedMs = timeOf(message.timestamp) - (Math.abs(aheadMs) < 1_000 ? 0 : aheadMs)
  return {
    context: { ...Object(context), ...Object(message['context']) },
    originalTimestamp: message.timestamp,
    timestamp: Number.isNaN(happenedMs) ? 'a time' : new Date(happenedMs).toISOString(),
  }
}

function timeOf(text: unknown): number {
  return Date.parse(String(text))
}

function lettersOf({ deadLetters }: Evidence, id: DestinationId): DeadLetter[] {
  return deadLetters.filter((letter) => letter['destination-id'] === id)
}

function customerOf({ customers }: Evidence, id: DestinationId): Customer {
  const customer = customers.all.get(id)
  if (customer === undefined) throw new Error(`there is no customer ${id}`)
  return customer
}

function tally<T>(values: readonly T[]): Map<T, number> {
  const counts = new Map<T, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}

function describe(counts: ReadonlyMap<unknown, number>): string {
  return [...counts].map(([value, count]) => `${String(value)} ${count}`).join(', ') || 'none'
}
