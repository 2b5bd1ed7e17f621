import { describe, expect, test } from 'vitest'
import { encodeCommitMetadata, maxRememberedOffsets } from '../../../../src/kafka/wire/commit-metadata.ts'
import { Partition } from '../../../../src/kafka/partitions/partition.ts'
import { memoryOf, noCommit } from '../../../../src/kafka/wire/stored-commit.ts'

const nowMs = 1_700_000_000_000
const hour = 3_600_000

describe('a record is due', () => {
  test('so long after its append as its topic waits', () => {
    expect(new Partition('retry.1h', 0, hour).dueMsOf(5, nowMs - 1_000, nowMs)).toBe(nowMs - 1_000 + hour)
  })

  test('at once where nothing waits, whatever its time', () => {
    const partition = new Partition('events', 0, 0)
    for (const timestampMs of [-1, 0, nowMs, nowMs + hour, 9e15]) {
      expect(partition.dueMsOf(5, timestampMs, nowMs)).toBeLessThanOrEqual(nowMs)
    }
  })

  test('no later than that after it was first seen, when its append lies in the future', () => {
    const partition = new Partition('retry.1h', 0, hour)
    expect(partition.dueMsOf(5, 9e15, nowMs)).toBe(nowMs + hour)
    expect(partition.dueMsOf(5, 9e15, nowMs + hour)).toBe(nowMs + hour)
  })

  test('with all that was there then, so that they do not wait one after the other', () => {
    const partition = new Partition('retry.1h', 0, hour)
    partition.reachesTo(10)
    expect(partition.dueMsOf(5, 9e15, nowMs)).toBe(nowMs + hour)
    expect(partition.dueMsOf(9, 9e15, nowMs + hour)).toBe(nowMs + hour)
    expect(partition.dueMsOf(10, 9e15, nowMs + hour)).toBe(nowMs + 2 * hour)
  })
})

/** Returns a partition that has begun and has taken one record. */
function begun(): Partition {
  const partition = new Partition('audience-changes', 0, 0)
  partition.begin({ offset: 0, metadata: null })
  partition.begun()
  partition.take(0)
  return partition
}

describe('the end of a partition', () => {
  test('is seen at the time that was asked for it, once all before it was taken', () => {
    const partition = begun()
    partition.endsAt(2, nowMs)
    expect(partition.endSeenMs).toBe(0)
    partition.take(1)
    expect(partition.endSeenMs).toBe(nowMs)
  })

  test('is not seen while somebody holds back what was taken', () => {
    const partition = begun()
    partition.endsAt(1, nowMs)
    expect(partition.endSeenMs).toBe(nowMs)
    partition.take(1)
    partition.setFull('schema', true)
    partition.endsAt(2, nowMs + hour)
    expect(partition.endSeenMs).toBe(nowMs)
    partition.setFull('schema', false)
    expect(partition.endSeenMs).toBe(nowMs + hour)
  })
})

describe('a partition without a window', () => {
  const partition = new Partition('audience-changes', 0, 0, { hasWindow: false })
  partition.begin({ offset: 0, metadata: null })
  partition.begun()
  partition.take(0)
  const before = partition.standing(false)
  partition.committed(before)
  for (let offset = 1; offset < 2 * maxRememberedOffsets; offset++) {
    partition.take(offset)
    partition.settle(offset)
  }

  test('goes on however far apart its records are', () => {
    expect(partition.watermark.span).toBe(2 * maxRememberedOffsets)
    expect(partition.wantsPause).toBe(false)
  })

  test('commits its watermark and nothing above it', () => {
    const commit = partition.commitOf(partition.standing(false))
    expect(commit.offset).toBe(0)
    expect(memoryOf(commit)?.settledAbove).toEqual([])
  })

  test('has no news while its watermark stays', () => {
    expect(partition.isNews(partition.standing(false))).toBe(false)
  })
})

function stored(isFinal: boolean) {
  return { offset: 5, metadata: encodeCommitMetadata(5, [], { isFinal, epoch: 1 }) }
}

describe('a partition that was taken over', () => {
  test.each([
    ['without a final mark was left open', stored(false), true],
    ['with a final mark was not', stored(true), false],
    ['with a commit that says nothing was left open', { offset: 5, metadata: null }, true],
    ['without any commit had no owner', noCommit, false],
  ])('%s', (_which, commit, wasLeftOpen) => {
    const partition = new Partition('memberships', 0, 0, { needsState: true })
    partition.clear(commit)
    expect(partition.wasLeftOpen).toBe(wasLeftOpen)
  })

  test('knows what is left to do before it is begun', () => {
    const partition = new Partition('memberships', 0, 0, { needsState: true })
    partition.reachesTo(20)
    partition.clear(stored(true))
    expect(partition.lag).toBe(15)
  })

  test('keeps in mind what a former owner may have begun, until that is settled', () => {
    const partition = new Partition('memberships', 0, 0, { needsState: true })
    partition.clear({
      offset: 5,
      metadata: encodeCommitMetadata(5, [], { isFinal: true, epoch: 1, begunBelow: 7 }),
    })
    partition.begin(stored(true))
    const begunBelow = () => memoryOf(partition.commitOf(partition.standing(true)))?.begunBelow
    expect(begunBelow()).toBe(7)
    for (const offset of [5, 6]) {
      partition.take(offset)
      partition.settle(offset)
    }
    expect(begunBelow()).toBeUndefined()
  })
})

const commitOf = (partition: Partition) => partition.commitOf(partition.standing(false))
const epochOf = (partition: Partition) => memoryOf(commitOf(partition))?.epoch

test('reading again is over when all of it is settled', () => {
  const partition = new Partition('events', 0, 0)
  const of = stored(false)
  partition.findLog({ below: Infinity, end: 7, stored: of })
  partition.begin(of)
  for (const offset of [5, 6, 7]) partition.take(offset)
  partition.settle(6)
  partition.settle(7)
  expect(partition.isReadAgainOver).toBe(false)
  partition.settle(5)
  expect(partition.isReadAgainOver).toBe(true)
})

describe('the number of owners that a partition has had', () => {
  test('grows with each owner', () => {
    const first = new Partition('waiting', 0, 0)
    first.begin({ offset: 5, metadata: null })
    expect(epochOf(first)).toBe(1)
    const next = new Partition('waiting', 0, 0)
    next.begin(commitOf(first))
    expect(epochOf(next)).toBe(2)
  })

  test('does not grow when an owner begins again that has committed, and could not begin', () => {
    const partition = new Partition('waiting', 0, 0)
    partition.begin(stored(false))
    partition.begin(commitOf(partition))
    expect(epochOf(partition)).toBe(2)
    partition.begin({ offset: 5, metadata: encodeCommitMetadata(5, [], { isFinal: false, epoch: 4 }) })
    expect(epochOf(partition)).toBe(5)
  })
})

const settledEpoch = (partition: Partition) => memoryOf(commitOf(partition))?.settledEpoch

describe('the epoch of the last record above its watermark that is settled', () => {
  const log = {
    topicId: undefined,
    leaderEpochBefore: (offset: number) => (offset <= 20 ? 3 : 4),
  }
  test('is committed: of what was read here, as it was read', () => {
    const partition = new Partition('events', 0, 0)
    partition.begin({ offset: 10, metadata: null }, log)
    expect(settledEpoch(partition)).toBeUndefined()
    for (const offset of [10, 15, 25]) partition.take(offset)
    partition.settle(15)
    expect(settledEpoch(partition)).toBe(3)
    partition.settle(25)
    expect(settledEpoch(partition)).toBe(4)
  })

  test('is committed: of what was not read again yet, as the owner before has left it', () => {
    const partition = new Partition('events', 0, 0)
    const metadata = encodeCommitMetadata(10, [12, 30], { isFinal: true, epoch: 1, settledEpoch: 9 })
    partition.begin({ offset: 10, metadata }, log)
    for (const offset of [10, 12]) partition.take(offset)
    expect(settledEpoch(partition)).toBe(9)
    partition.take(30)
    expect(settledEpoch(partition)).toBe(4)
  })

  test('is not committed where the owner before has not left it', () => {
    const partition = new Partition('events', 0, 0)
    const metadata = encodeCommitMetadata(10, [12, 30], { isFinal: true, epoch: 1 })
    partition.begin({ offset: 10, metadata }, log)
    expect(settledEpoch(partition)).toBeUndefined()
  })
})

test('a partition that two have no room for is full until both have', () => {
  const partition = new Partition('events', 0, 0)
  partition.setFull('schema', true)
  partition.setFull('room', true)
  partition.setFull('room', false)
  expect(partition.isFull).toBe(true)
  partition.setFull('schema', false)
  expect(partition.isFull).toBe(false)
})
