import type { HeldRecord, RecordContent } from '../message/held-record.ts'
import type { AudiencePorts } from './audience-ports.ts'
import { filledHeader } from './headers.ts'
import type { TopicIntake } from './topic-intake.ts'

/** A record that didn't arrive in the partition of its user. */
export type Misplaced = {
  readonly record: HeldRecord
  readonly content: RecordContent
  readonly userId: string
  /** The partition to which the user belongs. */
  readonly unit: number
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
  { record, content, userId, unit, spaceId, intake, onMoved }: Misplaced,
  ports: Pick<AudiencePorts, 'move' | 'refuse' | 'fatal'>,
): Promise<void> {
  const { topic, partition, offset } = record
  // The bytes are part of a buffer that holds a whole fetch. They are copied, so that the buffer can be
  // freed.
  const value = Buffer.from(content.value ?? Buffer.alloc(0))
  const ofSpace = spaceId === undefined ? {} : { 'source-id': spaceId }
  const origin = filledHeader(content.headers, 'origin') ?? `${topic}/${partition}/${offset}`
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
