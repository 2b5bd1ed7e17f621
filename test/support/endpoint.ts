import {
  createEndpoints,
  type DestinationDefinition,
  type Endpoint,
  type HookDefinition,
} from '../../src/delivery/endpoint.ts'

/** Prepares a destination with one hook, as a worker does. `of`: its other fields. */
export function endpointOf(
  hook: Partial<HookDefinition> & Pick<HookDefinition, 'origin'>,
  of: Partial<DestinationDefinition> = {},
): Endpoint {
  const breaker = { failureShare: 0.5, minResults: 10, windowMs: 10_000, openMs: 5_000, maxOpenMs: 60_000 }
  return createEndpoints({ breaker, shareOfGroup: () => 1, isNamed: false }).of({
    id: 'crm',
    state: 'on',
    filter: undefined,
    sharedSecret: undefined,
    nextSharedSecret: undefined,
    standardWebhooks: false,
    strategy: 'all',
    maxInFlight: 64,
    rateLimit: undefined,
    hooks: [{ id: 'main', path: '/', headers: [], ...hook }],
    ...of,
  })
}
