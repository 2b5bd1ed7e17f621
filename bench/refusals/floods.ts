import { maxBatchBytes } from '../../src/gateway/messages/request-limits.ts'
import { Random } from '../../test/support/random.ts'
import type { FloodPlan, FloodRequests, GivenRequest } from './flood-process.ts'
import { filled, members, values } from './hostile-json.ts'
import { type HostileRequest, knownKey } from './hostile-requests.ts'

/**
 * A flood: its requests, how many a second are sent if this isn't the rate of the benchmark, and the statuses
 * with which the gateway must answer it.
 */
export type FloodKind = {
  readonly requests: FloodRequests
  readonly perSecond?: number
  readonly statuses: readonly number[]
}

export const floodNames = [
  'unknown key',
  'unknown key in the body',
  'over its rate',
  'over its rate, key in the body',
  'the worst of 2 KB',
  'the worst of 500 KB',
] as const
export type FloodName = (typeof floodNames)[number]
export type SideName = FloodName | 'no flood'

/** How many hostile requests are sent in a second. */
export const hostilePerS = 20

/**
 * Returns the floods. After many refusals, requests of the same address with an unknown key in a body in gzip
 * are answered 429. `worst`: the worst requests of at most 2 KB that were found. Each of them is sent from
 * another address, so none is refused because of those before it.
 */
export function floodsOf(worst: readonly HostileRequest[]): Readonly<Record<FloodName, FloodKind>> {
  const random = new Random(1)
  return {
    'unknown key': { requests: { keyIn: 'head', writeKey: 'nobody' }, statuses: [401] },
    'unknown key in the body': { requests: { keyIn: 'body', writeKey: 'nobody' }, statuses: [401, 429] },
    'over its rate': { requests: { keyIn: 'head', writeKey: 'limited-write-key' }, statuses: [429] },
    'over its rate, key in the body': {
      requests: { keyIn: 'body', writeKey: 'limited-write-key' },
      statuses: [429],
    },
    'the worst of 2 KB': {
      requests: { given: worst.map((of) => givenOf(of, random)), isFromMany: true },
      perSecond: hostilePerS,
      statuses: [200, 400, 401],
    },
    'the worst of 500 KB': {
      requests: { given: largeRequests(random), isFromMany: false },
      perSecond: hostilePerS,
      statuses: [200, 400, 401, 429],
    },
  }
}

export function givenOf({ call, hasKey, make }: HostileRequest, random: Random): GivenRequest {
  return { path: `/v1/${call}`, writeKey: hasKey ? knownKey : undefined, body: make(random) }
}

/** Returns requests of the largest length whose messages are all left out, or which are refused. */
function largeRequests(random: Random): readonly GivenRequest[] {
  const most = maxBatchBytes - 200
  const message = '{"batch":[{"type":"page","userId":"u",'
  const texts = [
    ...values.map((one) => filled([one], { open: `${message}"x":[`, close: ']}]}', most, random })),
    ...members.map((one) => filled([one], { open: message, close: '}]}', most, random })),
    ...values.slice(0, 9).map((one) => filled([one], { open: '{"batch":[', close: ']}', most, random })),
  ]
  return texts.map((text) => ({ path: '/v1/batch', writeKey: knownKey, body: Buffer.from(text) }))
}

/** Returns the plan of a flood. `perSecond`: the rate of the benchmark. */
export function planOf(
  { requests, perSecond }: FloodKind,
  to: { readonly origin: string; readonly perSecond: number; readonly connections: number },
): FloodPlan {
  return { ...to, requests, ...(perSecond !== undefined && { perSecond }) }
}
