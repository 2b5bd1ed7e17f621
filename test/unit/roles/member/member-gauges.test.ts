import { expect, test } from 'vitest'
import { createCatalog } from '../../../../src/catalog/catalog.ts'
import { readConfig } from '../../../../src/config/read.ts'
import { HookAnswers } from '../../../../src/health/hook-answers.ts'
import { WorstFailing } from '../../../../src/health/worst-failing.ts'
import type { PartitionState } from '../../../../src/kafka/partitions/partition-state.ts'
import { showMember, type ShownMember } from '../../../../src/roles/member/member-gauges.ts'
import { createWorkerMetrics } from '../../../../src/telemetry/worker-metrics.ts'

const started: PartitionState = {
  topic: 'sluice.retry.1h',
  id: 0,
  waitMs: 3_600_000,
  isWaiting: false,
  isFull: false,
  isWindowFull: false,
  lag: 7,
  oldestUnsettledMs: 0,
  isPaused: false,
  headDueMs: 0,
  heldCount: 0,
}

/** Returns the values that a member with these partitions shows of a metric. */
async function shown(partitions: readonly PartitionState[], name: string): Promise<unknown> {
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error(read.message)
  const metrics = createWorkerMetrics({ perDestination: false })
  const none = { records: 0, bytes: 0, partitions: 0 }
  const member = {
    config: read.config,
    catalog: () => createCatalog([], [], '1'),
    stalls: { stalledBy: '' },
    pipeline: {
      inFlight: 0,
      queued: 0,
      paced: { hooks: 0, inFlight: 0, queued: 0 },
      ruleTime: { totalMs: 0 },
      held: none,
      openHooks: () => [],
    },
    outbound: { open: { idle: 0 } },
    consumer: { partitions, lastCommitMs: 0, troubled: new Map(), preparing: [1] },
    producer: { failing: new Map() },
    intake: { held: none },
    waiting: { counts: () => [], indexBytes: 0 },
    retentions: { current: new Map([['sluice.retry.1h', 1_000]]) },
    tiers: [],
    audiences: { progress: [] },
    marks: { behind: [] },
    firstSyncs: { progress: [] },
    replays: { running: 0 },
    repeats: undefined,
    answers: new HookAnswers(Date.now),
    worst: new WorstFailing(),
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the gauges read no other members
  showMember(metrics, member as unknown as ShownMember)
  const values = (await metrics.registry.getSingleMetric(name)?.get())?.values ?? []
  return values.map(({ value }) => value)
}

const waiting = { ...started, id: 1, isWaiting: true, lag: 0 }

test.each(['sluice_consumer_lag_records', 'sluice_parked_records', 'sluice_retention_used_ratio'])(
  'a partition that has not been started does not count as worked off in %s',
  async (name) => {
    expect(await shown([waiting], name)).toEqual([])
    expect(await shown([started, waiting], name)).toEqual(await shown([started], name))
  },
)

test('a partition whose window is full is counted', async () => {
  expect(
    await shown([started, { ...started, id: 2, isWindowFull: true }], 'sluice_partitions_window_full'),
  ).toEqual([1])
  expect(await shown([started], 'sluice_partitions_window_full')).toEqual([0])
})
