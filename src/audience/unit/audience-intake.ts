import type { HeldRecord, RecordContent } from '../../message/held-record.ts'
import { guarded } from '../../message/internal-fault.ts'
import type { MessageLimits } from '../../message/limits.ts'
import { partitionOf } from '../../message/partitioner.ts'
import { sourceIdOf } from '../../message/record-headers.ts'
import type { AudiencePorts } from '../audience-ports.ts'
import { type Change, type ReadChange, readChange } from '../records/change-record.ts'
import { readDeletion } from '../records/deletion-request.ts'
import { movedFrom, moveToItsUnit } from './moving.ts'
import { decodeState } from '../records/state-record.ts'
import type { AudienceUnit } from './unit.ts'

export type AudienceIntakeOptions = {
  readonly partitions: number
  /**
   * The number of partitions that the topics had before their last growth; `undefined` if the topics never
   * grew.
   */
  readonly formerPartitions?: number | undefined
  readonly limits: MessageLimits
  readonly ports: Pick<AudiencePorts, 'spaceOf' | 'refuse' | 'move' | 'fatal' | 'observer'>
}

/**
 * Reads records of `audience-changes`, `memberships` and `deletions`. Passes each record to the unit in whose
 * partition the record arrived. If the record isn't valid, refuses it. If the record's user belongs to
 * another unit, moves the record to that unit. This class holds no state.
 */
export class AudienceIntake {
  readonly #options: AudienceIntakeOptions

  constructor(options: AudienceIntakeOptions) {
    this.#options = options
  }

  /** Processes a record of `audience-changes`: a change, or a part of a sync. */
  acceptChange(unit: AudienceUnit, record: HeldRecord, content: RecordContent): void {
    const { ports, limits, partitions, formerPartitions } = this.#options
    const spaceId = this.#spaceOf(record, content)
    if (spaceId === undefined) return
    const origin = movedFrom(record, content.headers, partitions)
    const { partition, offset, timestampMs } = record
    const read = guarded((): ReadChange =>
      readChange(
        content.value,
        { spaceId, partition, offset, timestampMs, origin },
        { limits, partitions, formerPartitions },
      ),
    )
    if (!read.ok) ports.refuse(record, content, read.reason, read.detail)
    else if (read.kind === 'part') unit.acceptPart(record, content, read.part)
    else if (read.change.unit === partition) unit.acceptChange(record, content, read.change)
    else this.#moveChange(unit, record, content, read.change)
  }

  /** Processes a record of `memberships`. */
  acceptState(unit: AudienceUnit, record: HeldRecord, content: RecordContent): void {
    const { key, value, unreadable } = content
    unit.readEpoch(content.leaderEpoch)
    const decoded = unreadable === undefined ? decodeState(key, value) : undefined
    if (decoded?.ok === true) {
      unit.acceptState(record, decoded.record, (key?.length ?? 0) + (value?.length ?? 0))
      return
    }
    unit.passState(record)
    const { ports } = this.#options
    if (decoded === undefined) ports.refuse(record, content, 'unreadable_batch', unreadable ?? '')
    else
      ports.refuse(
        record,
        content,
        'bad_state',
        `Write to memberships through Sluice alone: ${decoded.fault}.`,
      )
  }

  /** Processes a record of `deletions`. */
  acceptDeletion(unit: AudienceUnit, record: HeldRecord, content: RecordContent): void {
    const { ports, limits, partitions } = this.#options
    if (content.unreadable !== undefined) {
      ports.refuse(record, content, 'unreadable_batch', content.unreadable)
      return
    }
    const read = guarded(() => readDeletion(content.value, record.timestampMs, limits))
    if (!read.ok) {
      ports.refuse(record, content, read.reason, read.detail)
      return
    }
    const { userId } = read.request
    const own = partitionOf(userId, partitions)
    if (own !== record.partition) {
      const misplaced = { record, content, userId, unit: own, partitions, intake: unit.deletionIntake }
      void moveToItsUnit(misplaced, ports)
      return
    }
    const origin = movedFrom(record, content.headers, partitions)
    unit.acceptDeletion(record, { ...read.request, origin }, content.value?.length ?? 0)
  }

  /**
   * Returns the space of a change. Returns `undefined` if the record can't be read, or if its space is
   * unknown or disabled. In these cases, this method has already settled or refused the record.
   */
  #spaceOf(record: HeldRecord, content: RecordContent): string | undefined {
    const { ports } = this.#options
    if (content.unreadable !== undefined) {
      ports.refuse(record, content, 'unreadable_batch', content.unreadable)
      return undefined
    }
    const sourceId = sourceIdOf(content.headers)
    if (sourceId === undefined) {
      ports.refuse(record, content, 'no_source', 'Send a header source-id with the id of an audience space.')
      return undefined
    }
    switch (ports.spaceOf(sourceId)) {
      case 'enabled':
        return sourceId
      case 'disabled':
        record.settle()
        ports.observer.changed('space_disabled', sourceId)
        return undefined
      case 'unknown':
        ports.refuse(
          record,
          content,
          'unknown_source',
          'Add the source to the catalog: it has none of this source-id.',
        )
        return undefined
      case 'no_space':
        ports.refuse(
          record,
          content,
          'unknown_source',
          'Send changes for a source of the kind audiences: the one of this source-id is not.',
        )
        return undefined
    }
  }

  #moveChange(from: AudienceUnit, record: HeldRecord, content: RecordContent, change: Change): void {
    const { ports, partitions } = this.#options
    const { userId, spaceId } = change.stateKey
    const { unit } = change
    const onMoved = (): void => ports.observer.changed('moved', spaceId)
    const intake = from.changeIntake
    void moveToItsUnit({ record, content, userId, unit, partitions, spaceId, intake, onMoved }, ports)
  }
}
