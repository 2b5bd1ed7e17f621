import type { SharedBreath } from '../async/shared-breath.ts'
import type { RecordProducer } from '../kafka/produce/producer.ts'
import type { PartitionReader } from '../kafka/read/partition-reader.ts'
import type { HeldRecord, RecordContent } from '../message/held-record.ts'
import type { OutboundRecord } from '../message/records.ts'
import type { OriginPlace } from '../message/record-headers.ts'
import type { QueuePartition } from './mark-writer.ts'
import type { Owners, QueueClass } from './owners.ts'
import type { Pieces } from './pieces.ts'

// What a unit's queue needs from others.

/** What the brokers say of a unit's log. */
export type FoundLog = {
  readonly topicId: string
  readonly range: { readonly start: number; readonly end: number }
}

/**
 * A record to append. Its headers name its destination. `source` is the record from which its delivery was
 * made.
 */
export type AppendedRecord = Pick<OutboundRecord, 'key' | 'value' | 'headers'> & {
  readonly source?: OriginPlace
}

/** Takes a record of `waiting` whose turn has come. */
export type TakeWaiting = (record: HeldRecord, content: RecordContent, queueClass: QueueClass) => void

export type QueueLog = Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>

export type UnitQueueOptions = {
  readonly unit: number
  /** The names of the topics `waiting` and `waiting-marks`. */
  readonly topic: string
  readonly marksTopic: string
  readonly reader: PartitionReader
  readonly producer: Pick<RecordProducer, 'produce' | 'produceAt'>
  readonly owners: Owners
  readonly pieces: Pieces
  /** Paces what is handed on from the queues of all units. */
  readonly handing: SharedBreath
  /** See `WaitingQueuesOptions`. */
  readonly hasRoom?: (() => boolean) | undefined
  readonly partition: QueuePartition
  readonly take: TakeWaiting
  readonly expire: TakeWaiting
  /** Takes a record that was given up. */
  readonly drop: TakeWaiting
  readonly maxAgeMs: () => number
  /** Called when a class of a destination gets its first record that waits. */
  readonly onWaiting: (code: number) => void
  /** Called with the number of records that were deleted before they were delivered. */
  readonly onLost: (count: number) => void
  readonly log: QueueLog
}
