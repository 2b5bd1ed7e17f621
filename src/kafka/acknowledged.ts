import { type ICustomPartitioner, Partitioners, type RecordMetadata } from 'kafkajs'

type Written = { next: number }

/**
 * What a send has really written. kafkajs 2.2.4 resolves although it hasn't sent the records of a partition whose leader was lost
 * meanwhile, when the new leader had acknowledged others of the same send already (`producer/sendMessages.js` asks no broker
 * twice): its answers then don't name that partition.
 */
export class Acknowledged {
  readonly #topics = new Map<string, Map<number, Written>>()

  constructor(answers: readonly RecordMetadata[]) {
    for (const { topicName, partition, baseOffset, offset } of answers) {
      let partitions = this.#topics.get(topicName)
      if (partitions === undefined) {
        partitions = new Map()
        this.#topics.set(topicName, partitions)
      }
      partitions.set(partition, { next: Number(baseOffset ?? offset) })
    }
  }

  /**
   * The offset of the next record of this partition, in the order in which they were sent: those of one partition are
   * written as one batch. `undefined` when nobody has acknowledged them.
   */
  next(topic: string, partition: number | undefined): number | undefined {
    const written = partition === undefined ? undefined : this.#topics.get(topic)?.get(partition)
    return written === undefined ? undefined : written.next++
  }
}

/** Places records by their key as Java's clients do, and writes the partition into the message. */
export const createNotingPartitioner: ICustomPartitioner = () => {
  const place = Partitioners.DefaultPartitioner()
  return (args) => {
    const partition = place(args)
    args.message.partition = partition
    return partition
  }
}
