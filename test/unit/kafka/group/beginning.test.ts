import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { News } from '../../../../src/kafka/partitions/commits.ts'
import { createFetcher } from '../../../../src/kafka/fetch/fetcher.ts'
import { Gate } from '../../../../src/kafka/partitions/feed.ts'
import { Beginning } from '../../../../src/kafka/group/beginning.ts'
import { OwnedPartitions } from '../../../../src/kafka/partitions/owned-partitions.ts'
import type { Partition } from '../../../../src/kafka/partitions/partition.ts'
import { UnitTenures } from '../../../../src/kafka/group/unit-tenures.ts'
import { until } from '../../../support/until.ts'
import { leaderOf, nothing, viewOf } from '../scripted-kafka.ts'

const subscription = { topic: 'memberships', waitMs: 0, needsState: true }

/**
 * A member that begins the partition memberships/0. `answers` and `commit` may hold this up. So may `readStored`, which
 * is called before the commits are read.
 */
function member({
  answers = nothing,
  commit = nothing,
  readStored = nothing,
}: Partial<Record<'answers' | 'commit' | 'readStored', () => Promise<void>>>) {
  const begun: Partition[] = []
  const told: string[] = []
  const tell = (_fields: object, message: string): void => void told.push(message)
  const log = { debug: () => undefined, info: tell, warn: tell, error: tell }
  const view = viewOf(leaderOf({ topic: 'memberships', partition: 0, errorCode: 0, end: 100 }, answers))
  const fetcher = createFetcher({ view, longestWaitMs: () => 250, log })
  onTestFinished(() => void fetcher.stop())
  const owned = new OwnedPartitions([subscription], false)
  const units = new UnitTenures({
    prepare: nothing,
    released: nothing,
    handoverMs: 8_000,
    onPrepared: (unit) => void beginning.beginPrepared(unit),
    onTrouble: () => undefined,
  })
  const beginning: Beginning = new Beginning({
    handoverMs: 8_000,
    onTruncation: 'earliest',
    view,
    units,
    owned: () => owned.all,
    joins: () => 1,
    mayBegin: () => true,
    isStopping: () => false,
    isBusyHere: () => false,
    readClaims: async () => [],
    async readStored(partitions) {
      await readStored()
      return partitions.map(() => ({ offset: 10, metadata: null }))
    },
    commit: async (_news: readonly News[]) => {
      await commit()
      return new Set()
    },
    feed: (partition) => ({
      partition,
      fetcher,
      gate: new Gate(),
      onRecord: () => undefined,
      onLost: () => undefined,
      onTruncated: () => undefined,
    }),
    onBegun(partition, feed) {
      begun.push(partition)
      owned.begin(partition, feed)
    },
    onLost: () => undefined,
    onTruncated: () => undefined,
    log,
  })
  /** Starts the partition again, as the member does when another partition of the unit has another log. */
  function renew(): Partition {
    for (const partition of owned.all) {
      owned.remove(partition)
      partition.lose(() => undefined, Date.now())
      units.lose(partition.id)
    }
    units.release(() => true)
    const fresh = owned.add('memberships', 0)
    beginning.takeOver([fresh])
    return fresh
  }
  return { begun, owned, beginning, renew, view, told }
}

test('what keeps a partition from beginning is told and tried again, until it begins', async () => {
  const outcomes = ['failed', 'read', 'failed']
  const { begun, owned, beginning, view, told } = member({
    async readStored() {
      if (outcomes.shift() === 'failed') throw new Error('the coordinator does not answer')
    },
  })
  view.lead(undefined)
  const partition = owned.add('memberships', 0)
  beginning.takeOver([partition])
  await until('it waits for a leader', () => told.length === 3)
  expect(begun).toEqual([])
  view.lead(0)
  await until('it begins', () => begun.length > 0)
  expect(told).toEqual([
    'taking over partitions failed, trying again',
    'taking over the partitions of a unit failed, trying again',
    'a partition can not be read yet, trying again',
  ])
})

test.each(['answers', 'commit'] as const)(
  'a partition that starts again while it begins (%s) begins only as the new one',
  async (heldUp) => {
    const held = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    const hold = async (): Promise<void> => {
      reached.resolve()
      await held.promise
    }
    const { begun, owned, beginning, renew } = member({ [heldUp]: hold })
    const former = owned.add('memberships', 0)
    beginning.takeOver([former])
    await reached.promise
    const fresh = renew()
    await nextTurn()
    held.resolve()
    await until('a partition begins', () => begun.length > 0)
    expect(begun).toEqual([fresh])
    expect(owned.feedOf(former)).toBeUndefined()
    expect(owned.feedOf(fresh)?.isPaused).toBe(false)
  },
)
