import type { GroupConsumer } from '../../kafka/group/consumer.ts'
import type { Pipeline } from '../../pipeline/pipeline-ports.ts'

// Some parts of a member need each other. The group consumer gives records to all parts, and is asked by most
// of them. The pipeline asks the audiences, and gets messages from them. The part that starts first gets the
// other part by one of these ports, which can be called from the beginning.

type AskedConsumer = Pick<
  GroupConsumer,
  | 'isMember'
  | 'checkInTouch'
  | 'endSeenMs'
  | 'partitions'
  | 'setFull'
  | 'setCongested'
  | 'setPartitionFull'
  | 'isReadByAll'
  | 'pulled'
  | 'early'
>

/**
 * The group consumer, for the parts that start before it. Until it has started, this process is no member of
 * the group and owns no partition. What stops the fetching until then also stops the consumer that starts.
 */
export class GroupPort implements AskedConsumer {
  #consumer: AskedConsumer | undefined
  #isFull = false
  #isCongested = false

  connect(consumer: AskedConsumer): void {
    this.#consumer = consumer
    consumer.setFull(this.#isFull)
    consumer.setCongested(this.#isCongested)
  }

  get isMember(): boolean {
    return this.#consumer?.isMember ?? false
  }

  get partitions(): GroupConsumer['partitions'] {
    return this.#consumer?.partitions ?? []
  }

  checkInTouch(): boolean {
    return this.#consumer?.checkInTouch() ?? true
  }

  endSeenMs(topic: string, id: number): number {
    return this.#consumer?.endSeenMs(topic, id) ?? 0
  }

  setFull(isFull: boolean): void {
    this.#isFull = isFull
    this.#consumer?.setFull(isFull)
  }

  setCongested(isCongested: boolean): void {
    this.#isCongested = isCongested
    this.#consumer?.setCongested(isCongested)
  }

  setPartitionFull(topic: string, id: number, isFull: boolean, holder?: string): void {
    this.#consumer?.setPartitionFull(topic, id, isFull, holder)
  }

  isReadByAll(topic: string): boolean {
    return this.#consumer?.isReadByAll(topic) ?? true
  }

  early(topic: string, id: number): ReturnType<GroupConsumer['early']> {
    return this.#consumer?.early(topic, id)
  }

  pulled(topic: string, id: number): ReturnType<GroupConsumer['pulled']> {
    return this.#consumer?.pulled(topic, id)
  }
}

type Delivers = Pick<
  Pipeline,
  | 'acceptIdentify'
  | 'acceptDelete'
  | 'acceptWaiting'
  | 'hasRoomForWaiting'
  | 'expireWaiting'
  | 'dropWaiting'
  | 'refill'
  | 'refuse'
  | 'rates'
>

/**
 * The pipeline, for the audiences, the queues of destinations, and lending. They have something to deliver
 * only once the group has given them a record or a partition, and the group consumer starts after the
 * pipeline.
 */
export class DeliveryPort {
  #pipeline: Delivers | undefined

  connect(pipeline: Delivers): void {
    this.#pipeline = pipeline
  }

  get pipeline(): Delivers {
    if (this.#pipeline === undefined)
      throw new Error('a part of this member has something to deliver too early')
    return this.#pipeline
  }
}
