import type { Destination } from '../catalog/catalog.ts'
import { basicAuthorization, type HookLogin } from '../catalog/features/hook-login.ts'
import type { HookTls } from '../catalog/features/hook-tls.ts'
import type { Batch } from '../catalog/features/batch.ts'
import { hookBreach } from '../catalog/hook-rules.ts'
import { batchTypes } from './batch/batch-body.ts'
import { TakenSize } from './batch/taken-size.ts'
import { Breaker, type BreakerOptions } from './lanes/breaker.ts'
import type { SickLoad } from './lanes/sick-load.ts'
import { HookLoad } from './load/hook-load.ts'
import { secretsOf } from '../secrets/secret-texts.ts'
import type { Logins } from './login/logins.ts'
import type { TokenLogin } from './login/token-login.ts'
import { Noted } from './noted.ts'
import { createRequestHeaders, type RequestHeaders } from './request-headers.ts'
import type { HookOwner } from './send/hook-pool.ts'
import type { Target } from './send/sender.ts'
import type { Rate } from '../async/token-bucket.ts'

/** The fields of a hook in the catalog, as far as delivery needs them. */
export type HookDefinition = {
  readonly id: string
  /** `https://example.com:8443` */
  readonly origin: string
  /** Path and query. */
  readonly path: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly login?: HookLogin
  readonly tls?: HookTls
}

/** The fields of a destination in the catalog, as far as delivery needs them. */
export type DestinationDefinition = {
  readonly id: string
  readonly state: 'on' | 'off' | 'paused' | 'auto_paused'
  readonly filter: Destination['filter']
  readonly mappings?: Destination['mappings']
  readonly sharedSecret: string | undefined
  /**
   * The secret that will replace `sharedSecret`. It is set only together with `standardWebhooks` or
   * `sharedSecretEndsAtMs`.
   */
  readonly nextSharedSecret: string | undefined
  /** The time from which requests are signed with `nextSharedSecret` only, in epoch milliseconds. */
  readonly sharedSecretEndsAtMs?: number | undefined
  /** True if the headers of Standard Webhooks are sent. This is possible only with a `sharedSecret`. */
  readonly standardWebhooks: boolean
  /** Private keys of Ed25519, with each of which requests are signed too. They must never be logged. */
  readonly signingKeys?: readonly string[] | undefined
  readonly strategy: 'all' | 'failover'
  /**
   * Limit on deliveries in flight in the destination's lane. What was learned about its hooks may allow
   * fewer.
   */
  readonly maxInFlight: number
  /**
   * Limit on requests in flight to each failing hook of the destination. `undefined`: only the number of
   * sockets for failing hooks limits these requests.
   */
  readonly maxInFlightSick?: number | undefined
  /**
   * The limits on the attempts of the whole consumer group: how many attempts may start in a second, and how
   * many may start at once after an idle time.
   */
  readonly rateLimit: Rate | undefined
  /** The deadline of a request, in milliseconds, if it is shorter than that of all requests. */
  readonly timeoutMs?: number | undefined
  /** How messages are sent together. `undefined`: each has a request of its own. */
  readonly batch?: Batch | undefined
  readonly hooks: readonly HookDefinition[]
  /** The sources to which the destination is connected. */
  readonly sources?: readonly string[]
}

/** A hook prepared for sending, with its breaker, which knows how healthy the hook is. */
export type EndpointHook = {
  readonly id: string
  readonly target: Target
  /** The login by which requests get a token. `undefined`: their headers are all that they need. */
  readonly login: TokenLogin | undefined
  readonly breaker: Breaker
  /** What was learned about the load that the hook's server takes. */
  readonly load: HookLoad
  /** What was learned about the size of the batches that the hook takes. */
  readonly takenSize: TakenSize
  /** The destination's own limit on requests in flight to the hook while the hook's breaker is open. */
  readonly cap: number | undefined
  /**
   * The reason why no request can be made to the hook. `undefined`: requests can be made. The catalog already
   * refuses hooks with such a reason. This is a second check, before a request is passed to undici.
   */
  readonly refusal: string | undefined
}

/** A destination prepared for sending. This is done once for each version of its definition. */
export type Endpoint = {
  readonly definition: DestinationDefinition
  readonly hooks: readonly EndpointHook[]
  /** True if a hook has a `login`. */
  readonly hasLogins: boolean
  readonly headersOf: RequestHeaders
}

/** The `User-Agent` that the specification asks for: the name of the service, with version 1.0. */
const userAgent = 'Sluice/1.0'

export type Endpoints = {
  /**
   * Returns the endpoint of a destination. The endpoint is the same object as long as the catalog keeps the
   * same definition.
   */
  of(definition: DestinationDefinition): Endpoint
  /** Returns the endpoint of a destination. Returns `undefined` if no call of `of` has created it yet. */
  known(definition: DestinationDefinition): Endpoint | undefined
  /** The endpoints with a hook whose breaker may be open. They may be those of former definitions. */
  readonly open: Pick<Noted<Endpoint>, 'those'>
  /** The endpoints with a hook that may get less than it could. They may be those of former definitions. */
  readonly lowered: Pick<Noted<Endpoint>, 'those'>
}

export type EndpointsOptions = {
  readonly breaker: BreakerOptions
  /**
   * Returns the fraction of the consumer group that this worker is, above 0 and up to 1. Each worker makes
   * only its part of the requests that a hook's server takes at once.
   */
  readonly shareOfGroup: () => number
  /** True if requests have headers with the id of their message and the number of the attempt. */
  readonly isNamed: boolean
  /** Shared by all hooks of the process. */
  readonly sickLoad?: SickLoad
  /** The logins of the process. Without them, nothing can be sent to a hook that needs a token. */
  readonly logins?: Logins
}

export function createEndpoints(options: EndpointsOptions): Endpoints {
  const endpoints = new WeakMap<DestinationDefinition, Endpoint>()
  const noted = { open: new Noted<Endpoint>(), lowered: new Noted<Endpoint>() }
  return {
    ...noted,
    of(definition) {
      let endpoint = endpoints.get(definition)
      if (endpoint === undefined) {
        endpoint = prepare(definition, options, noted)
        endpoints.set(definition, endpoint)
      }
      return endpoint
    },
    known: (definition) => endpoints.get(definition),
  }
}

function prepare(
  definition: DestinationDefinition,
  { breaker, shareOfGroup, isNamed, sickLoad, logins }: EndpointsOptions,
  noted: Readonly<Record<'open' | 'lowered', Noted<Endpoint>>>,
): Endpoint {
  // If each message goes to several URLs, one that takes less must not hold up the others.
  const isLearned = definition.hooks.length === 1 || definition.strategy === 'failover'
  const endpoint: Endpoint = {
    definition,
    hasLogins: definition.hooks.some(({ login }) => login?.kind === 'oauth2'),
    hooks: definition.hooks.map((hook) => {
      const load = new HookLoad(shareOfGroup, definition.maxInFlight, {
        isLearned,
        onLowered: () => noted.lowered.note(endpoint),
      })
      const { login } = hook
      return {
        id: hook.id,
        target: targetOf(hook, definition),
        login: login?.kind === 'oauth2' ? logins?.of(login, hook, ownerOf(definition)) : undefined,
        breaker: new Breaker(breaker, load, sickLoad, () => noted.open.note(endpoint)),
        load,
        takenSize: new TakenSize(),
        cap: definition.maxInFlightSick,
        refusal: hookBreach(hook)?.problem,
      }
    }),
    headersOf: createRequestHeaders(definition, isNamed),
  }
  return endpoint
}

function targetOf(hook: HookDefinition, definition: DestinationDefinition): Target {
  const type = definition.batch === undefined ? 'application/json' : batchTypes[definition.batch.format]
  const headers = ['User-Agent', userAgent, 'Content-Type', type]
  for (const [name, value] of hook.headers) headers.push(name, value)
  // Some firewalls refuse requests without it (OWASP Core Rule Set, rule 920300).
  if (!hook.headers.some(([name]) => name.toLowerCase() === 'accept')) headers.push('Accept', '*/*')
  const { sharedSecret = '', nextSharedSecret = '', timeoutMs } = definition
  const values = [...hook.headers.map(([, value]) => value), sharedSecret, nextSharedSecret]
  if (hook.login?.kind === 'basic') {
    const authorization = basicAuthorization(hook.login)
    headers.push('Authorization', authorization)
    values.push(authorization)
  }
  const secrets = secretsOf(values, hook.path)
  const { origin, path, tls } = hook
  const owner = ownerOf(definition)
  return { origin, path, headers, secrets, owner, timeoutMs, tls, connections: undefined }
}

function ownerOf({
  id: destinationId,
  sources: [sourceId = destinationId] = [],
}: DestinationDefinition): HookOwner {
  return { destinationId, sourceId }
}
