import { Random } from '../test/support/random.ts'

/**
 * The ways in which a network can be disturbed. `slow` delays answers, and `narrow` limits the bandwidth.
 * `resets` resets connections. `silent` lets nothing pass. `closed` refuses connections.
 */
export const networkTroubles = ['slow', 'narrow', 'resets', 'silent', 'closed'] as const
export type NetworkTrouble = (typeof networkTroubles)[number]

/**
 * A fault and its target. `forMs` is how long the fault lasts. `pick` chooses one of the workers that are
 * available when the fault begins.
 */
export type Fault =
  | { kind: 'kill worker'; pick: number; forMs: number }
  /** Suspends the worker with SIGSTOP for longer than the session timeout. */
  | { kind: 'freeze worker'; pick: number; forMs: number }
  /** Suspends the worker with SIGSTOP so briefly that it stays in the group. */
  | { kind: 'pause worker'; pick: number; forMs: number }
  /** Ends a worker with SIGTERM, and starts another one. */
  | { kind: 'restart worker'; pick: number; forMs: number }
  /** Starts one more worker. After `forMs`, one of all workers leaves. */
  | { kind: 'add worker'; pick: number; forMs: number }
  | { kind: 'kill broker'; broker: number; forMs: number }
  | { kind: 'restart broker'; broker: number; forMs: number }
  | { kind: 'pause broker'; broker: number; forMs: number }
  | { kind: 'kill gateway'; forMs: number }
  | { kind: 'restart gateway'; forMs: number }
  | { kind: 'pause gateway'; forMs: number }
  /** Disturbs the network between Sluice and one broker. */
  | { kind: 'trouble to Kafka'; broker: number; trouble: NetworkTrouble; forMs: number }
  /** Disturbs the network between Sluice and one endpoint. */
  | { kind: 'trouble to an endpoint'; trouble: NetworkTrouble; forMs: number }
  /** Pauses a destination in the catalog. */
  | { kind: 'pause destination'; forMs: number }
  /** Edits what is sent to a destination, in the catalog. */
  | { kind: 'edit destination'; forMs: number }
  /** Calls the messages of a destination back that wait for a retry. */
  | { kind: 'retry now'; forMs: number }

/**
 * A row of faults. Faults of different lanes may overlap. In the lanes `kills` and `group` the faults of the
 * same lane may overlap too. In the other lanes they follow each other.
 */
export type Lane = 'kills' | 'group' | 'brokers' | 'gateway' | 'kafka network' | 'endpoints' | 'operator'

/** A fault and the time when it begins, in milliseconds from the start of the drill. */
export type TimedFault = { atMs: number; lane: Lane; fault: Fault }

/** The time without faults at the start of the drill. */
const firstMs = 6_000
/** The time at the end of the drill in which no fault begins, so that faults end before the drill does. */
const lastMs = 14_000
export const brokerCount = 3

type Range = readonly [least: number, most: number]
type Plan = { everyMs: number; kinds: readonly (readonly [Fault['kind'], Range])[] }

/**
 * The kinds of faults of each lane, and the mean time between two faults. There are more than two kills a
 * minute, so that ten minutes have more than twenty kills.
 */
const plans: Readonly<Record<Lane, Plan>> = {
  kills: { everyMs: 25_000, kinds: [['kill worker', [500, 4_000]]] },
  group: {
    everyMs: 24_000,
    kinds: [
      ['freeze worker', [8_000, 12_000]],
      ['pause worker', [1_000, 3_500]],
      ['restart worker', [500, 3_000]],
      ['add worker', [4_000, 9_000]],
    ],
  },
  brokers: {
    everyMs: 90_000,
    kinds: [
      ['kill broker', [3_000, 12_000]],
      ['pause broker', [2_000, 8_000]],
      ['restart broker', [500, 3_000]],
    ],
  },
  gateway: {
    everyMs: 45_000,
    kinds: [
      ['kill gateway', [500, 3_000]],
      ['pause gateway', [1_000, 4_000]],
      ['restart gateway', [500, 2_000]],
    ],
  },
  'kafka network': { everyMs: 40_000, kinds: [['trouble to Kafka', [2_000, 7_000]]] },
  endpoints: {
    everyMs: 25_000,
    kinds: [
      ['trouble to an endpoint', [3_000, 10_000]],
      ['pause destination', [4_000, 10_000]],
    ],
  },
  operator: {
    everyMs: 30_000,
    kinds: [
      ['retry now', [0, 1]],
      ['edit destination', [0, 1]],
    ],
  },
}

/** Returns the faults of a drill in order of time. The same seed and length give the same faults. */
export function scheduleOf({ seed, lengthMs }: { seed: number; lengthMs: number }): TimedFault[] {
  const random = new Random(seed)
  return lanes.flatMap((lane) => faultsOf(lane, lengthMs, random)).sort((a, b) => a.atMs - b.atMs)
}

export const lanes: readonly Lane[] = [
  'kills',
  'group',
  'brokers',
  'gateway',
  'kafka network',
  'endpoints',
  'operator',
]

/** Returns the faults of one lane. The time is split into equal stretches, and each stretch has one fault. */
function faultsOf(lane: Lane, lengthMs: number, random: Random): TimedFault[] {
  const { everyMs, kinds } = plans[lane]
  const spanMs = Math.max(0, lengthMs - firstMs - lastMs)
  const count = Math.max(1, Math.round(lengthMs / everyMs))
  const stretchMs = spanMs / count
  const troubles = turns(networkTroubles, random)
  const turn = turns(kinds, random, lane === 'brokers')
  return Array.from({ length: count }, (_, index) => {
    const [kind, [least, most]] = turn()
    const forMs = least + random.below(most - least)
    const atMs = Math.round(firstMs + (index + random.below(600) / 1_000) * stretchMs)
    return { atMs, lane, fault: faultOf(kind, { forMs, random, trouble: troubles }) }
  })
}

/**
 * Returns a function that returns the items in turn, in a new random order each round. So a short drill has
 * all items too. With `isFirstFixed`, the very first call returns the first item.
 */
function turns<T>(items: readonly T[], random: Random, isFirstFixed = false): () => T {
  let left: T[] = isFirstFixed ? [...items] : []
  let isFirst = isFirstFixed
  return () => {
    if (left.length === 0) left = [...items]
    const next = isFirst ? items[0] : random.pick(left)
    isFirst = false
    if (next === undefined) throw new Error('there is nothing to choose from')
    left.splice(left.indexOf(next), 1)
    return next
  }
}

function faultOf(
  kind: Fault['kind'],
  { forMs, random, trouble }: { forMs: number; random: Random; trouble: () => NetworkTrouble },
): Fault {
  switch (kind) {
    case 'kill worker':
    case 'freeze worker':
    case 'pause worker':
    case 'restart worker':
    case 'add worker':
      return { kind, pick: random.below(12), forMs }
    case 'kill broker':
    case 'restart broker':
    case 'pause broker':
      return { kind, broker: 1 + random.below(brokerCount), forMs }
    case 'trouble to Kafka':
      return { kind, broker: 1 + random.below(brokerCount), trouble: trouble(), forMs }
    case 'trouble to an endpoint':
      return { kind, trouble: trouble(), forMs }
    case 'kill gateway':
    case 'restart gateway':
    case 'pause gateway':
    case 'pause destination':
    case 'edit destination':
    case 'retry now':
      return { kind, forMs }
  }
}
