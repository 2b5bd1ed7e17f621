import { randomUUID } from 'node:crypto'
import { type AddressPolicy, createAddressPolicy } from '../../address/policy.ts'
import type { Catalog, Destination } from '../../catalog/catalog.ts'
import type { Batch } from '../../catalog/features/batch.ts'
import type { Config } from '../../config/schema.ts'
import { ownRequest } from '../../delivery/own-request.ts'
import { readsStatuses, settledOf, settlementOf, wholeOutcomeOf } from '../../delivery/batch/batch-answer.ts'
import { batchBody, batchIdOf } from '../../delivery/batch/batch-body.ts'
import { createEndpoints, type Endpoint, type EndpointHook } from '../../delivery/endpoint.ts'
import type { Outcome } from '../../delivery/outcomes/outcome.ts'
import { type LoggedInListener, postLoggedIn } from '../../delivery/login/logged-in-exchange.ts'
import { Logins } from '../../delivery/login/logins.ts'
import type { TokenLogin } from '../../delivery/login/token-login.ts'
import { judge, type Verdict } from '../../delivery/outcomes/verdict.ts'
import type { Sender } from '../../delivery/send/sender.ts'
import { enter } from '../../message/enter.ts'
import type { Entered } from '../../message/entered.ts'
import { outgoingOf } from '../../shape/choice.ts'
import { isOwnRequest } from '../../shape/shaper.ts'
import type { Shaped } from '../../shape/shaper.ts'
import { createPlainOutbound } from '../start/outbound.ts'
import { someOf } from '../start/progress.ts'
import type { DeskAnswer, DeskRefusal } from './replay-desk.ts'
import { pipelineSettings } from '../start/settings.ts'
import { partitionKey } from '../../message/partitioner.ts'

/** The header that the requests of a test have in addition to those of a delivery. */
const testHeader = ['X-Sluice-Test', 'true'] as const

export type TestOrder = {
  readonly destinationId: string
  /** The id of the only hook to send to. `undefined`: the message is sent to all hooks of the destination. */
  readonly hookId: string | undefined
  /** The message as JSON. `undefined`: a `track` that Sluice makes. */
  readonly message: string | undefined
}

/** What came of the request for a token to log in with. `problem`: why it brought none. */
type TokenTrial = { readonly problem: string | undefined; readonly durationMs: number }

/**
 * The result of a request to a hook. `outcome` and `verdict` are those of the message, also if it was sent as a
 * batch of one. `durationMs` counts from its start to its outcome. */
export type HookTrial = {
  readonly hook: EndpointHook
  /** `undefined`: the hook needs no token, or can't be sent to. */
  readonly token: TokenTrial | undefined
  readonly outcome: Outcome
  readonly verdict: Verdict
  readonly durationMs: number
}

export type DestinationTest = {
  readonly destination: Destination
  readonly message: Entered
  readonly trials: readonly HookTrial[]
  /** The deadline of each request, in milliseconds. */
  readonly timeoutMs: number
  /** Says which addresses are allowed. */
  readonly policy: AddressPolicy
}

/**
 * Sends one message to the hooks of a destination, all at once. The requests are those that a worker with the
 * same configuration would make, with one more header and without `traceparent`. The state, the filter, the
 * rate limit and the breakers of the destination have no effect. Kafka isn't needed, and the delivery log
 * doesn't have these requests.
 */
export async function testDestination(
  config: Config,
  catalog: Catalog,
  { destinationId, hookId, message: given }: TestOrder,
): Promise<DeskAnswer<DestinationTest>> {
  const destination = catalog.destinations.get(destinationId)
  if (destination === undefined) {
    const what = `The catalog has no destination ${JSON.stringify(destinationId)}`
    return refusal('notFound', `${what}: it has ${someOf([...catalog.destinations.keys()])}.`)
  }
  const { breaker, namesRequests } = pipelineSettings(config)
  const hookIds = destination.hooks.map(({ id }) => id)
  if (hookId !== undefined && !hookIds.includes(hookId)) {
    const what = `${destinationId} has no hook ${JSON.stringify(hookId)}`
    return refusal('invalid', `${what}: it has ${someOf(hookIds)}.`)
  }
  const nowMs = Date.now()
  const value = Buffer.from(given ?? JSON.stringify(madeMessage(new Date(nowMs).toISOString())))
  const origin = { topic: 'test', partition: 0, offset: nowMs, timestampMs: nowMs }
  const entered = enter(value, origin, config.message)
  if (!entered.ok) return refusal('invalid', `${entered.reason}: ${entered.detail}`)
  const { message } = entered
  const outgoing = outgoingOf(destination.mappings, {
    body: message.body,
    isOwed: message.type === 'delete',
  })
  if (outgoing.kind === 'none')
    return refusal('invalid', `No mapping of ${destinationId} is for this message: give another one.`)
  if (outgoing.kind === 'failed')
    return refusal('invalid', `The mapping of ${destinationId} makes no request of it: ${outgoing.detail}.`)
  const shaped = outgoing.kind === 'shaped' ? outgoing.shaped : undefined
  const outbound = createPlainOutbound(config)
  try {
    const { sender } = outbound
    const logins = new Logins({ sender, now: Date.now })
    const options = { breaker, shareOfGroup: () => 1, isNamed: namesRequests, logins }
    const endpoint = createEndpoints(options).of(destination)
    const hooks = endpoint.hooks.filter(({ id }) => hookId === undefined || id === hookId)
    const trials = await Promise.all(
      hooks.map((hook) => tryHook({ sender, endpoint, hook, message, shaped })),
    )
    const { timeoutMs, allowAddresses } = config.delivery
    const policy = createAddressPolicy(allowAddresses)
    return { ok: true, value: { destination, message, trials, timeoutMs, policy } }
  } finally {
    await outbound.close()
  }
}

function refusal(kind: DeskRefusal['kind'], problem: string): DeskRefusal {
  return { ok: false, kind, problem }
}

/** Returns a message with the fields that messages from the gateway have. */
function madeMessage(now: string): object {
  return {
    type: 'track',
    userId: 'sluice-test',
    event: 'Sluice Test',
    properties: {},
    messageId: `test-${randomUUID()}`,
    timestamp: now,
    receivedAt: now,
  }
}

type TrialParts = {
  sender: Sender
  endpoint: Endpoint
  hook: EndpointHook
  message: Entered
  /** What a mapping has made of the message. */
  shaped: Shaped | undefined
}

async function tryHook({ sender, endpoint, hook, message, shaped }: TrialParts): Promise<HookTrial> {
  const { target, login, refusal: detail } = hook
  if (detail !== undefined) {
    const outcome: Outcome = { kind: 'request', detail }
    return { hook, token: undefined, outcome, verdict: judge(outcome), durationMs: 0 }
  }
  const token = login && (await tryLogin(login))
  const key = partitionKey(JSON.parse(message.body.toString()))
  const userId = key === undefined ? null : Buffer.from(key)
  const startedMs = performance.now()
  const { batch } = endpoint.definition
  const isBatched = batch !== undefined && !isOwnRequest(shaped)
  const sent = { ...message, body: shaped === undefined ? message.body : shaped.body }
  const { body, messageId } = isBatched ? batchOf(sent, batch) : sent
  const headers = [...endpoint.headersOf({ messageId, body, attempts: 1 }, Date.now()), ...testHeader]
  return new Promise((resolve) => {
    const exchange: LoggedInListener = {
      userId,
      own: isBatched ? undefined : shaped && ownRequest(target, shaped),
      ...(isBatched && { reads: readsStatuses, wholeOf: (outcome) => wholeOutcomeOf(outcome, 1) }),
      answered(outcome) {
        const settled = isBatched
          ? settledOf(settlementOf(outcome, 1), 0)
          : { outcome, verdict: judge(outcome) }
        resolve({ hook, token, ...settled, durationMs: performance.now() - startedMs })
      },
      released: () => undefined,
    }
    if (login === undefined) sender.post(target, body, headers, exchange)
    else postLoggedIn(login, (own, by) => sender.post(target, body, headers.concat(own), by), exchange)
  })
}

async function tryLogin(login: TokenLogin): Promise<TokenTrial> {
  const startedMs = performance.now()
  const token = await login.wait()
  const problem = token === undefined ? (login.problem ?? 'there is no token') : undefined
  return { problem, durationMs: performance.now() - startedMs }
}

function batchOf({ body, messageId }: Entered, { format }: Batch): { body: Buffer; messageId: string } {
  return { body: batchBody(format, [body]), messageId: batchIdOf([messageId]) }
}
