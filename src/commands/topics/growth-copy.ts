import { merged } from '../../growth/merged.ts'
import { decodePlace, encodePlace, type Place, placeHeader } from '../../growth/original-place.ts'
import { unitOfWaiting, unitsOfState } from '../../growth/targets.ts'
import type { CopyProducer } from '../../kafka/produce/copy-writer.ts'
import { type GroupCommit, commitOf } from '../../kafka/other-groups/group-state.ts'
import type { PartitionReader } from '../../kafka/read/partition-reader.ts'
import type { WholeRecord } from '../../message/records.ts'
import { headerText } from '../../message/record-headers.ts'
import { isSettled, type SourcePartition } from './growth-source.ts'
import { StartError } from '../../roles/start/start-error.ts'
import type { Change } from '../../growth/plan.ts'

export type CopyOptions = {
  readonly change: Change
  readonly reader: PartitionReader
  readonly producer: CopyProducer
  /**
   * Called each time that further offsets of a copied partition were processed, with the number of these
   * offsets.
   */
  readonly onPassed: (offsets: number) => void
}

/** The range of a partition's offsets from which records are copied. */
type Stretch = {
  readonly log: SourcePartition
  /** The first offset of the range. `to` is the offset after the last offset of the range. */
  readonly from: number
  readonly to: number
  /**
   * True if records of the range may have to be delivered or processed later. Each record of the range then
   * has to be readable.
   */
  readonly isOwed: boolean
  /** True to copy only records that aren't settled. */
  readonly isOpen?: boolean
}

/**
 * A record that was read in order to be copied. `orderMs` is the time by which the records of all partitions
 * are sorted.
 */
type Read = { readonly partition: number; readonly orderMs: number; readonly record: WholeRecord }

/**
 * Copies topics to the topics of another layout. Every copied record has the partition, the offset and the
 * time of its original in a header. If a run was killed, the next run finds out from these values which
 * records are copied already, and doesn't copy these records again.
 */
export class GrowthCopy {
  readonly #options: CopyOptions

  constructor(options: CopyOptions) {
    this.#options = options
  }

  /**
   * Copies one part of `memberships`. The first call copies the records before the group's committed offsets.
   * The second call (`isOpen`) copies the records from these offsets on. So the group's offset in each
   * partition of the copy lies between the two parts. `above` is the offset at which the part begins, for
   * each partition of the copy.
   */
  async states(
    source: readonly SourcePartition[],
    copy: string,
    part: { readonly isOpen: boolean; readonly above: readonly number[] },
  ): Promise<void> {
    const logs = source.map((log) => {
      const { start, position, end } = log
      return part.isOpen
        ? { log, from: position, to: end, isOwed: true }
        : { log, from: start, to: position, isOwed: false }
    })
    const { change } = this.#options
    await this.#copy(logs, copy, part.above, ({ partition, record }) =>
      unitsOfState(record.key, partition, change),
    )
  }

  /** Copies the unsettled records of a topic. */
  async waiting(source: readonly SourcePartition[], copy: string): Promise<void> {
    const { change } = this.#options
    const logs = source.map((log) => ({ log, from: log.position, to: log.end, isOwed: true, isOpen: true }))
    await this.#copy(logs, copy, [], ({ partition, record }) => [unitOfWaiting(record, partition, change)])
  }

  /**
   * Copies the records of all partitions, in the order in which brokers appended the records. The oldest
   * records come first, so retries fall due in the order of the copy. The records of each source partition
   * keep their order.
   */
  async #copy(
    logs: readonly Stretch[],
    copy: string,
    above: readonly number[],
    unitsOf: (read: Read) => readonly number[],
  ): Promise<void> {
    const copied = await this.#copiedTo(copy, above)
    const writer = this.#options.producer.to(copy)
    const readers = logs.map((log) => this.#recordsOf(log))
    for await (const read of merged(readers, (a, b) => a.orderMs - b.orderMs)) {
      const { partition, record } = read
      for (const unit of unitsOf(read))
        if (record.offset > (copied[unit]?.get(partition) ?? -1))
          await writer.write(copyOf(record, partition, unit))
    }
    await writer.flush()
    await this.#checkTimes(copy)
  }

  async *#recordsOf(stretch: Stretch): AsyncGenerator<readonly Read[], void> {
    const { log, from, to, isOwed, isOpen = false } = stretch
    const { topic, partition } = log
    const { reader, onPassed } = this.#options
    let orderMs = 0
    let passed = from
    if (from < to) {
      for await (const records of reader.readWhole({ topic, partition, from })) {
        const read: Read[] = []
        for (const record of records) {
          if (record.offset >= to) break
          if (isOpen && isSettled(log, record.offset)) continue
          if (isUnreadable(record, { topic, partition, isOwed })) continue
          // If the broker's clock was set back, the times aren't in order. In that case, the order of the
          // offsets counts.
          orderMs = Math.max(orderMs, record.timestampMs)
          read.push({ partition, orderMs, record })
        }
        yield read
        const next = Math.min(to, (records.at(-1)?.offset ?? passed - 1) + 1)
        onPassed(next - passed)
        passed = next
        if (passed >= to) return
      }
    }
    onPassed(Math.max(0, to - passed))
  }

  /**
   * Returns the commits of the group for the copy of `memberships`. They also list the records above the
   * committed offset that the group has settled.
   */
  async placesOfStates(
    source: readonly SourcePartition[],
    copy: string,
    bounds: readonly number[],
  ): Promise<GroupCommit[]> {
    const commits: GroupCommit[] = []
    for (const [partition, offset] of bounds.entries()) {
      const settledAbove = new Set<number>()
      for await (const records of this.#options.reader.readWhole({ topic: copy, partition, from: offset })) {
        for (const record of records) {
          const place = placeOf(record, copy, partition)
          const log = source[place.partition]
          if (log !== undefined && isSettled(log, place.offset)) settledAbove.add(record.offset)
        }
      }
      commits.push(commitOf({ topic: copy, partition, offset, settledAbove, ...markOf(source) }))
    }
    return commits
  }

  /**
   * Returns the commits for the copy of `replays` or of a retry topic: offset 0 with nothing settled, because
   * only unsettled records were copied.
   */
  placesOfWaiting(source: readonly SourcePartition[], copy: string): GroupCommit[] {
    return numbers(this.#options.change.to.partitions).map((partition) =>
      commitOf({ topic: copy, partition, offset: 0, settledAbove: new Set(), ...markOf(source) }),
    )
  }

  /** Returns the offset after the last record of each partition of a copy. */
  async endsOf(copy: string): Promise<number[]> {
    const { change, reader } = this.#options
    const ranges = await Promise.all(
      numbers(change.to.partitions).map((partition) => reader.range({ topic: copy, partition })),
    )
    return ranges.map(({ end }) => end)
  }

  /**
   * Returns the offset of the last record that was copied, for each unit of the copy and each old partition.
   * One offset is enough, because the records of each old partition are copied in their order.
   */
  async #copiedTo(copy: string, above: readonly number[]): Promise<readonly ReadonlyMap<number, number>[]> {
    const { change, reader } = this.#options
    const copied: Map<number, number>[] = []
    for (const unit of numbers(change.to.partitions)) {
      const ofLogs = new Map<number, number>()
      for await (const records of reader.readWhole({
        topic: copy,
        partition: unit,
        from: above[unit] ?? 0,
      })) {
        for (const record of records) {
          const { partition, offset } = placeOf(record, copy, unit)
          ofLogs.set(partition, Math.max(offset, ofLogs.get(partition) ?? -1))
        }
      }
      copied.push(ofLogs)
    }
    return copied
  }

  /**
   * Throws if the brokers didn't keep the times of copied records. Without these times, retries would wait
   * for their whole time again, and old records would be deleted late.
   */
  async #checkTimes(copy: string): Promise<void> {
    const { change, reader } = this.#options
    for (const partition of numbers(change.to.partitions)) {
      const { end } = await reader.range({ topic: copy, partition })
      if (end === 0) continue
      for await (const records of reader.readWhole({ topic: copy, partition, from: end - 1 })) {
        for (const record of records) {
          if (placeOf(record, copy, partition).timestampMs === record.timestampMs) continue
          throw new StartError(
            `${copy} does not keep the times of records that are copied to it, though it was made with message.timestamp.type=CreateTime: this cluster can not be grown so. Run \`sluice topics grow --abandon\`.`,
          )
        }
      }
    }
  }
}

function copyOf({ key, value, headers, offset, timestampMs }: WholeRecord, partition: number, unit: number) {
  const place = encodePlace({ partition, offset, timestampMs })
  return { partition: unit, key, value, headers: { ...headers, [placeHeader]: place }, timestampMs }
}

function placeOf({ headers, offset }: WholeRecord, copy: string, partition: number): Place {
  const place = decodePlace(headerText(headers, placeHeader))
  if (place !== undefined) return place
  throw new StartError(
    `${copy}/${partition} has a record at offset ${offset} that this growth has not written: see who writes there, run \`sluice topics grow --abandon\`, and begin again.`,
  )
}

/**
 * Returns true if a record can't be read and doesn't have to be copied. Throws if a record that can't be read
 * may have to be delivered or processed later.
 */
function isUnreadable(
  { unreadable }: WholeRecord,
  { topic, partition, isOwed }: { topic: string; partition: number; isOwed: boolean },
): boolean {
  if (unreadable === undefined) return false
  if (!isOwed) return true
  throw new StartError(
    `A batch of ${topic}/${partition} can not be read: ${unreadable}. Run \`sluice topics grow --abandon\`, start the workers, which put it in the dead letters, stop them and begin again.`,
  )
}

/**
 * Returns the final mark (`isFinal`) and the epoch for all commits of the copy. Records of any old unit may
 * be in any new unit. So a commit has the final mark only if the commits of all old units have it. Its epoch
 * is the highest epoch of the old units.
 */
function markOf(source: readonly SourcePartition[]): { isFinal: boolean; epoch: number } {
  return {
    isFinal: source.every(({ place }) => place.isFinal),
    epoch: Math.max(0, ...source.map(({ place }) => place.epoch)),
  }
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}
