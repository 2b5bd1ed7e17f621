import { describe, expect, test } from 'vitest'
import { type IsolatedName, type PeerName, peerNames } from '../../../bench/peers/names.ts'
import { versions } from '../../../bench/peers/programs.ts'
import { resultOf } from '../../../bench/peers/result.ts'
import { type Side, sideOf } from '../../../bench/peers/side.ts'
import type { Pair } from '../../../bench/support/pairs.ts'
import type { Latency } from '../../../bench/support/recorder-process.ts'
import type { Measurement } from '../../../bench/support/turns.ts'

const setup = {
  runs: 3,
  messages: 60_000,
  inFlight: 256,
  ratePerS: 2_000,
  deadShare: 0.1,
  seconds: 30,
  warmupS: 75,
  versions: { 'franz-go': '1.2.3', 'parallel-consumer': '4.5.6' },
}

const cpuUs: Record<PeerName, number> = {
  worker: 90,
  'franz-go': 45,
  'parallel-consumer': 60,
  signing: 40,
  floor: 30,
  dispatch: 20,
}

const throughput = new Map(
  peerNames.map((name): [PeerName, Measurement[]] => [
    name,
    [10, 0, -5].map((more) => ({
      deliveriesPerS: 10_000 + more,
      cpuUs: cpuUs[name] + more,
      warmDeliveriesPerS: 20_000 + more,
      warmCpuUs: cpuUs[name] / 2 + more,
      connectionsEach: 0.01,
    })),
  ]),
)

const healthy: Side = { perS: 1_800, p99Ms: 8, othersShare: 0.01 }
const still: Side = { perS: 0, p99Ms: undefined, othersShare: 0.01 }

type Troubled = Record<IsolatedName, Side>

function pairWith(troubled: Partial<Troubled>): Pair<Troubled> {
  const without = { worker: healthy, 'franz-go': healthy, 'parallel-consumer': healthy }
  return { without, with: { ...without, ...troubled } }
}

const isolation = [
  pairWith({ worker: { ...healthy, perS: 1_790, p99Ms: 9 }, 'franz-go': still, 'parallel-consumer': still }),
  pairWith({ 'franz-go': still, 'parallel-consumer': { ...still, perS: 9 } }),
  pairWith({ worker: { ...healthy, p99Ms: 12 }, 'franz-go': still, 'parallel-consumer': healthy }),
]

describe('peers: the result', () => {
  const { table, figures } = resultOf({ throughput, isolation }, setup)
  const rowOf = (label: string): string[] => {
    const row = table.split('\n').find((line) => line.startsWith(label)) ?? ''
    return row.slice(label.length).trim().split(/ {2,}/)
  }

  test('has the medians of the runs and of the pairs in one row for each', () => {
    expect(rowOf('sluice worker, signed')).toEqual(['10,000', '90.0', '45.0', '100.0 %', '8.0', '9.0'])
    expect(rowOf('parallel-consumer + Vert.x')).toEqual(['10,000', '60.0', '30.0', '0.5 %', '8.0', 'none'])
  })

  test('says that a peer stands still, and has no p99 then', () => {
    expect(rowOf('franz-go + net/http, naive')).toEqual(['10,000', '45.0', '22.5', '0.0 %', '8.0', 'none'])
    expect(figures).toMatchObject({
      peers: { 'franz-go': { healthy_kept: 0, p99_ms_without: 8, p99_ms_with: null } },
    })
  })

  test('leaves out what a peer without destinations has not been asked', () => {
    expect(rowOf('undici dispatch, no Kafka')).toEqual(['10,000', '20.0', '10.0', '-', '-', '-'])
    expect(figures).toHaveProperty('peers.dispatch', {
      deliveries_per_s: 10_000,
      cpu_us: 20,
      warm_deliveries_per_s: 20_000,
      warm_cpu_us: 10,
    })
  })

  test('sets the CPU time of the worker against that of the others', () => {
    expect(figures).toMatchObject({
      floor_ratio: 2.25,
      bare_floor_ratio: 3,
      franz_go_ratio: 2,
      parallel_consumer_ratio: 1.5,
    })
    expect(rowOf('worker / floor that signs')).toEqual(['2.25', '2.25'])
    expect(rowOf('worker / bare floor')).toEqual(['3.00', '3.00'])
  })

  test('has all that came of each pair', () => {
    expect(figures).toHaveProperty('peers.parallel-consumer.pairs.1', {
      without: { per_s: 1_800, p99_ms: 8, machine_used_by_others: 0.01 },
      with: { per_s: 9, p99_ms: null, machine_used_by_others: 0.01 },
    })
  })

  test('survives JSON as it is', () => {
    expect(JSON.parse(JSON.stringify(figures))).toEqual(figures)
  })
})

describe('peers: a side', () => {
  test('has the p99 of the messages when they came', () => {
    expect(sideWith(1_000)).toEqual({ perS: 100, p99Ms: 7, othersShare: 0.02 })
    expect(sideWith(991).p99Ms).toBe(7)
  })

  test('has none when one message in a hundred did not come', () => {
    expect(sideWith(990)).toEqual({ perS: 99, p99Ms: undefined, othersShare: 0.02 })
    expect(sideWith(0).p99Ms).toBeUndefined()
  })
})

test('peers: the versions of the libraries are read from go.mod and pom.xml', () => {
  for (const version of Object.values(versions)) expect(version).toMatch(/^\d+\.\d+/)
})

/** Returns a side that delivered this many of 1,000 messages in the window. */
function sideWith(samples: number): Side {
  const latency: Latency = { samples, p50: 2, p99: 7, p999: 8, max: 9, p99BySecond: [] }
  return sideOf({ inWindow: samples, latency }, { producedPerS: 100, seconds: 10, othersShare: 0.02 })
}
