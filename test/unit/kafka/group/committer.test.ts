import { expect, onTestFinished, test, vi } from 'vitest'
import { Committer } from '../../../../src/kafka/group/committer.ts'
import type { Commits } from '../../../../src/kafka/partitions/commits.ts'
import { LostPartitions } from '../../../../src/kafka/partitions/lost-partitions.ts'
import { OwnedPartitions } from '../../../../src/kafka/partitions/owned-partitions.ts'
import { Partition } from '../../../../src/kafka/partitions/partition.ts'

const startMs = Date.parse('2026-01-01T12:00:00Z')

/** Returns the partitions of a member that has started `begun`. */
function ownersOf(begun: ReadonlySet<Partition>): OwnedPartitions {
  const owned = new OwnedPartitions([], false)
  for (const { topic, id } of begun) {
    const partition = owned.add(topic, id)
    partition.begin({ offset: 5, leaderEpoch: 0, metadata: null })
    partition.begun()
  }
  return owned
}

function member({ refused = new Set<Partition>(), heardAgoMs = 0 } = {}) {
  vi.useFakeTimers({ now: startMs })
  onTestFinished(() => void vi.useRealTimers())
  const seen = { failures: 0 }
  const committer = new Committer({
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the committer uses no other members
    commits: { read: async () => [], write: async () => refused } as unknown as Commits,
    membership: {
      identity: { memberId: 'member', generationId: 1, instanceId: undefined },
      heard: () => undefined,
      get heardAgoMs() {
        return heardAgoMs
      },
      refused: () => undefined,
    },
    owned: ownersOf(refused),
    lostPartitions: new LostPartitions(8_000),
    everyMs: 1_000,
    isStopping: () => false,
    onCommitted: () => undefined,
    onFailed: () => void seen.failures++,
    onTrouble: () => undefined,
  })
  return { committer, seen }
}

test('a clock that is set back does not leave the last commit in the future', async () => {
  const { committer } = member()
  await committer.commit()
  expect(committer.lastCommitMs).toBe(startMs)
  vi.setSystemTime(startMs - 3_600_000)
  await committer.commit()
  expect(committer.lastCommitMs).toBe(startMs - 3_600_000)
})

test('a member that hears nothing has committed what had settled when it last heard, though the clock was set back', async () => {
  const { committer } = member({ heardAgoMs: 60_000 })
  vi.setSystemTime(startMs - 3_600_000)
  await committer.commit()
  expect(Date.now() - committer.lastCommitMs).toBe(60_000)
})

test('a commit that is refused for one partition counts as failed', async () => {
  const { committer, seen } = member({ refused: new Set([new Partition('events', 0, 0)]) })
  await committer.send([])
  expect(seen.failures).toBe(1)
})

test('while a partition’s commits are refused, not all that has settled counts as committed', async () => {
  const { committer } = member({ refused: new Set([new Partition('events', 0, 0)]) })
  await committer.commit()
  expect(committer.lastCommitMs).toBe(0)
})
