import { hookBreach } from '../catalog/hook-rules.ts'
import { Breaker, type BreakerOptions } from './breaker.ts'
import { secretsOf } from './kept-answer.ts'
import { createSigner, type Signer } from './signature.ts'
import type { Target } from './sender.ts'
import type { Rate } from '../pacing/token-bucket.ts'

/** What delivery needs of a hook: a destination of the catalog has it. */
export type HookDefinition = {
  readonly id: string
  /** `https://example.com:8443` */
  readonly origin: string
  /** Path and query. */
  readonly path: string
  readonly headers: readonly (readonly [name: string, value: string])[]
}

/** What delivery needs of a destination. */
export type DestinationDefinition = {
  readonly id: string
  readonly state: 'on' | 'off' | 'paused'
  readonly sharedSecret: string | undefined
  /** Only with `standardWebhooks`. */
  readonly nextSharedSecret: string | undefined
  /** Only with a `sharedSecret`. */
  readonly standardWebhooks: boolean
  readonly strategy: 'all' | 'failover'
  /** Most deliveries in flight in its lane. */
  readonly maxInFlight: number
  /**
   * Most requests in flight to each of its hooks that isn't well; absent: as many as there are sockets for
   * such hooks.
   */
  readonly maxInFlightSick?: number | undefined
  /** Most attempts a second over the whole group, and how many at once after a pause. */
  readonly rateLimit: Rate | undefined
  readonly hooks: readonly HookDefinition[]
}

/** A hook made ready to send to, with what is known of its health. */
export type EndpointHook = {
  readonly id: string
  readonly target: Target
  readonly breaker: Breaker
  /** Most requests in flight to it when its breaker is open, and when it is closed. */
  readonly cap: number | undefined
  readonly laneCap: number
  /**
   * Why no request can be made of it: then nothing may be sent. The catalog refuses such a hook; were one to
   * get past it, undici's pool would lose a connection slot for ever with each request.
   */
  readonly refusal: string | undefined
}

/** A destination made ready to send to: done once for each version of its definition. */
export type Endpoint = {
  readonly definition: DestinationDefinition
  readonly hooks: readonly EndpointHook[]
  /** The headers that sign the requests of one attempt; none where the destination has no secret. */
  readonly sign: Signer
}

/** The seed's product token: the service, with version 1.0. */
const userAgent = 'Sluice/1.0'

export type Endpoints = {
  /** The endpoint of a destination; the same one as long as the catalog keeps the same definition. */
  of(definition: DestinationDefinition): Endpoint
  /** The same where it has been asked for before. */
  known(definition: DestinationDefinition): Endpoint | undefined
}

export function createEndpoints(breaker: BreakerOptions): Endpoints {
  const endpoints = new WeakMap<DestinationDefinition, Endpoint>()
  return {
    of(definition) {
      let endpoint = endpoints.get(definition)
      if (endpoint === undefined) {
        endpoint = prepare(definition, breaker)
        endpoints.set(definition, endpoint)
      }
      return endpoint
    },
    known: (definition) => endpoints.get(definition),
  }
}

function prepare(definition: DestinationDefinition, breaker: BreakerOptions): Endpoint {
  const { sharedSecret } = definition
  return {
    definition,
    hooks: definition.hooks.map((hook) => ({
      id: hook.id,
      target: targetOf(hook, definition),
      breaker: new Breaker(breaker),
      cap: definition.maxInFlightSick,
      laneCap: definition.maxInFlight,
      refusal: hookBreach(hook)?.problem,
    })),
    sign: sharedSecret === undefined ? signNothing : createSigner({ ...definition, sharedSecret }),
  }
}

const noHeaders: readonly string[] = []
const signNothing: Signer = () => noHeaders

function targetOf(hook: HookDefinition, definition: DestinationDefinition): Target {
  const headers = ['User-Agent', userAgent, 'Content-Type', 'application/json']
  for (const [name, value] of hook.headers) headers.push(name, value)
  const { sharedSecret = '', nextSharedSecret = '' } = definition
  const values = [...hook.headers.map(([, value]) => value), sharedSecret, nextSharedSecret]
  const secrets = secretsOf(values, hook.path)
  return { origin: hook.origin, path: hook.path, headers, secrets, connections: undefined }
}
