import type { HeldRecord, RecordContent } from '../../message/held-record.ts'
import {
  headerText,
  type OriginPlace,
  parseOrigin,
  type ReceivedHeaders,
} from '../../message/record-headers.ts'
import type { AudiencePorts } from '../audience-ports.ts'
import type { TopicIntake } from './topic-intake.ts'

/**
 * Returns the place from which a worker has moved a record to the partition of its user, according to the
 * record's header `origin`. Returns `undefined` if there is no such header, or if it names a place from which
 * no worker moves a record to this topic. Producers write to the same topics, so they can forge this header.
 * It only decides between two changes with the same `changedAt`, or whether a repeated request for a deletion
 * is sent again. Whoever writes such a record can decide that without the header too.
 */
export function movedFrom(
  { topic }: Pick<HeldRecord, 'topic'>,
  headers: ReceivedHeaders,
  partitions: number,
): OriginPlace | undefined {
  const text = headerText(headers, 'origin')
  if (text === undefined) return undefined
  const origin = parseOrigin(text)
  return origin?.topic === topic && origin.partition < partitions ? origin : undefined
}

/** A record that didn't arrive in the partition of its user. */
export type Misplaced = {
  readonly record: HeldRecord
  readonly content: RecordContent
  readonly userId: string
  /** The partition to which the user belongs. */
  readonly unit: number
  readonly partitions: number
  /** The space of a change; absent for a deletion. */
  readonly spaceId?: string
  /** The intake for the record's topic in the unit in which the record arrived. */
  readonly intake: TopicIntake
  readonly onMoved?: () => void
}

/**
 * Writes a copy of a record to the partition of its user, with the original place in a header. In the
 * partition of the user, all records of the user are in order. Settles or refuses the original record once
 * Kafka has answered.
 */
export async function moveToItsUnit(
  { record, content, userId, unit, partitions, spaceId, intake, onMoved }: Misplaced,
  ports: Pick<AudiencePorts, 'move' | 'refuse' | 'fatal'>,
): Promise<void> {
  const { topic } = record
  // The bytes are part of a buffer that holds a whole fetch. They are copied, so that the buffer can be
  // freed.
  const value = Buffer.from(content.value ?? Buffer.alloc(0))
  const ofSpace = spaceId === undefined ? {} : { 'source-id': spaceId }
  const from = movedFrom(record, content.headers, partitions) ?? record
  const origin = `${topic}/${from.partition}/${from.offset}`
  intake.add(topic, value.length)
  try {
    const headers = { ...ofSpace, origin }
    const moved = await ports.move({ topic, partition: unit, key: Buffer.from(userId), value, headers })
    intake.remove(value.length)
    if (moved === 'refused') {
      const copy = { key: null, value, headers: ofSpace }
      ports.refuse(record, copy, 'record_too_large', 'Send less, or to the partition of the user.')
      return
    }
    record.settle()
    onMoved?.()
  } catch (error) {
    ports.fatal(new Error(`a record of ${topic} can't be moved to partition ${unit}`, { cause: error }))
  }
}
