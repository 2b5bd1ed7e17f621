import { KeyFilter } from '../../audience/store/key-filter.ts'
import { parseStateKey } from '../../audience/records/state-record.ts'
import type { TopicCount, Change } from '../../growth/plan.ts'
import { mayBeSyncPart } from '../../growth/sync-part.ts'
import { SyncFloors } from '../../growth/merged-sync-floors.ts'
import { unitsOfState } from '../../growth/targets.ts'
import type { PartitionReader } from '../../kafka/read/partition-reader.ts'
import type { WholeRecord } from '../../message/records.ts'
import { isSettled, openOf, type SourcePartition } from './growth-source.ts'

/**
 * The size of the filter that counts users, in bits. With ten million users, up to one user in ten isn't
 * counted.
 */
const userBits = 2 ** 27
const shownFaults = 20

export type Counting = {
  readonly reader: PartitionReader
  readonly change: Change
  readonly onPassed: (offsets: number) => void
}

/** Counts the states that would be copied. Also returns, in words, the reasons why states can't be copied. */
export async function countStates(
  source: readonly SourcePartition[],
  copy: string,
  { reader, change, onPassed }: Counting,
): Promise<{ count: TopicCount; users: number; faults: readonly string[] }> {
  const floors = new SyncFloors()
  const seen = new KeyFilter(userBits)
  const tally = { records: 0, bytes: 0, waiting: 0, users: 0 }
  for (const log of source) {
    await eachOf(log, log.start, { reader, onPassed }, (record) => {
      const copies = unitsOfState(record.key, log.partition, change).length
      tally.records += copies
      tally.bytes += copies * bytesOf(record)
      floors.take(log.partition, record.key, record.value)
      const stateKey = record.key === null ? undefined : parseStateKey(record.key)
      if (stateKey?.kind === 'property' && !seen.add(stateKey.userId)) tally.users++
    })
    tally.waiting += openOf(log)
  }
  const uneven = floors.uneven(change.from.partitions)
  const faults = uneven
    .slice(0, shownFaults)
    .map(
      ({ spaceId, audienceId, units }) =>
        `the last sync of audience ${audienceId} of ${spaceId} was not applied in ${units.length} of ${change.from.partitions} units (${units.slice(0, 10).join(', ')}): sync it again, and let the workers apply it`,
    )
  const { users, ...counted } = tally
  const topic = source[0]?.topic ?? ''
  return { count: { topic, copy, ...counted }, users, faults: withRest(faults, uneven.length) }
}

export async function countWaiting(
  source: readonly SourcePartition[],
  copy: string,
  { reader, onPassed }: Counting,
): Promise<TopicCount> {
  const tally = { records: 0, bytes: 0 }
  for (const log of source) {
    await eachOf(log, log.position, { reader, onPassed }, (record) => {
      if (isSettled(log, record.offset)) return
      tally.records++
      tally.bytes += bytesOf(record)
    })
  }
  return { topic: source[0]?.topic ?? '', copy, ...tally, waiting: tally.records }
}

/**
 * Finds parts of syncs among the unsettled changes. These parts belong to the old layout, and their syncs
 * can't be completed in another layout.
 */
export async function findSyncParts(
  source: readonly SourcePartition[],
  reader: PartitionReader,
): Promise<readonly string[]> {
  const faults: string[] = []
  for (const log of source) {
    let parts = 0
    await eachOf(log, log.position, { reader, onPassed: () => undefined }, (record) => {
      if (!isSettled(log, record.offset) && mayBeSyncPart(record.key, record.value)) parts++
    })
    if (parts > 0)
      faults.push(
        `${log.topic}/${log.partition} has ${parts} parts of syncs that are not applied: start the workers until they are, or until audiences.syncTimeout has refused them, with no other sync meanwhile`,
      )
  }
  return withRest(faults.slice(0, shownFaults), faults.length)
}

function withRest(shown: readonly string[], all: number): readonly string[] {
  return all > shown.length ? [...shown, `and ${all - shown.length} more like these`] : shown
}

async function eachOf(
  { topic, partition, end }: SourcePartition,
  from: number,
  { reader, onPassed }: Pick<Counting, 'reader' | 'onPassed'>,
  take: (record: WholeRecord) => void,
): Promise<void> {
  if (from >= end) return
  let passed = from
  for await (const records of reader.readWhole({ topic, partition, from })) {
    for (const record of records) take(record)
    const next = (records.at(-1)?.offset ?? passed - 1) + 1
    onPassed(next - passed)
    passed = next
  }
}

function bytesOf({ key, value, headers }: WholeRecord): number {
  let bytes = (key?.length ?? 0) + (value?.length ?? 0)
  for (const [name, given] of Object.entries(headers))
    for (const one of Array.isArray(given) ? given : [given]) bytes += name.length + (one?.length ?? 0)
  return bytes
}
