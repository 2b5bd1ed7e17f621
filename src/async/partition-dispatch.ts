import { PartitionQueue, type PartitionQueueOptions, type Room, type Sized } from './partition-queue.ts'

/** Items of one partition that are sent together. */
export type Batch<T extends Sized> = {
  readonly topic: string
  readonly partition: number
  readonly items: readonly T[]
  readonly queue: PartitionQueue<T>
}

/**
 * The way by which a batch is sent. Kafka answers the requests of one connection in their order, and answers
 * for all partitions of a request together. So a failing partition holds up everything that is sent after it.
 * For this reason, records of a partition that may be failing take the route `isolated`, which never holds up
 * the route `main`.
 */
export type Route = 'main' | 'isolated'

/**
 * The outcome of a batch. With `taken`, Kafka has the items. With `failed`, the items in `again` are sent
 * again after a pause. With `split`, each item in `again` is sent again at once, in a batch of its own.
 */
export type BatchEnd<T> =
  | { readonly kind: 'taken' }
  | { readonly kind: 'failed' | 'split'; readonly again: readonly T[] }

export type PartitionDispatchOptions<T extends Sized> = PartitionQueueOptions<T> & {
  /** The limits on the records and the bytes of one send, over all partitions. */
  readonly most: Readonly<Room>
  /** How long an item waits so that later items can be sent together with it, in milliseconds. */
  readonly lingerMs: number
  /**
   * True if items also wait for `lingerMs` after the end of each send. If false, the next send begins as soon
   * as the previous send has ended.
   */
  readonly lingersBetween: boolean
  /** Sends each batch once, and calls `onEnd` once for each batch. */
  readonly send: (
    batches: readonly Batch<T>[],
    route: Route,
    onEnd: (batch: Batch<T>, end: BatchEnd<T>) => void,
  ) => void
}

/**
 * The longest time for which the next send waits for the end of the current send, in milliseconds. If a send
 * takes longer, it probably contains a failing partition, so the other partitions stop waiting for it.
 */
const slowMs = 250

/**
 * Decides when waiting items are sent, and by which route. A send of healthy partitions waits for the end of
 * the previous send (at most `slowMs`), and takes all items that have arrived meanwhile. The items of a
 * failing partition are sent alone and by the isolated route. They are sent again after a pause, until the
 * partition takes them.
 */
export class PartitionDispatch<T extends Sized> {
  readonly #options: PartitionDispatchOptions<T>
  readonly #queues = new Map<string, PartitionQueue<T>[]>()
  /** The healthy queues with items to send, in the order in which they got their first item. */
  readonly #ready = new Set<PartitionQueue<T>>()
  readonly #rests = new Set<NodeJS.Timeout>()
  #isSending = false
  /** True if the last send had no room for all ready items. */
  #isBehind = false
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(options: PartitionDispatchOptions<T>) {
    this.#options = options
  }

  push(topic: string, partition: number, item: T): void {
    const queue = this.queueOf(topic, partition)
    const wasEmpty = queue.isEmpty
    queue.push(item)
    if (!wasEmpty || queue.isSending) return
    this.#makeReady(queue, this.#options.lingerMs)
    this.#sendLater()
  }

  queueOf(topic: string, partition: number): PartitionQueue<T> {
    let queues = this.#queues.get(topic)
    if (queues === undefined) {
      queues = []
      this.#queues.set(topic, queues)
    }
    return (queues[partition] ??= new PartitionQueue(topic, partition, this.#options))
  }

  /** The topics for which items were pushed. */
  get topics(): readonly string[] {
    return [...this.#queues.keys()]
  }

  /** Sends nothing from now on. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    for (const rest of this.#rests) clearTimeout(rest)
  }

  /**
   * Queues a partition for sending. Items of healthy partitions are sent together. Items of a failing
   * partition are sent alone, after a pause of `restMs` milliseconds.
   */
  #makeReady(queue: PartitionQueue<T>, restMs: number): void {
    if (queue.isEmpty || this.#isStopped) return
    if (!queue.isSick) {
      this.#ready.add(queue)
      return
    }
    const rest = setTimeout(() => {
      this.#rests.delete(rest)
      this.#sendIsolated(queue)
    }, restMs)
    this.#rests.add(rest)
  }

  /**
   * Schedules the next send after `lingerMs`, unless a send is in flight. In this time, further items can
   * join the next send.
   */
  #sendLater(): void {
    if (this.#isSending || this.#timer !== undefined || this.#ready.size === 0 || this.#isStopped) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#sendMain()
    }, this.#options.lingerMs)
  }

  #sendMain(): void {
    if (this.#isSending || this.#isStopped) return
    const batches = this.#takeBatches()
    if (batches.length === 0) return
    this.#isSending = true
    let open = batches.length
    const goOn = (): void => {
      clearTimeout(slow)
      open = 0
      this.#isSending = false
      if (this.#options.lingersBetween && !this.#isBehind) this.#sendLater()
      else this.#sendMain()
    }
    const slow = setTimeout(goOn, slowMs)
    this.#send(batches, 'main', () => {
      open--
      if (open === 0) goOn()
      else this.#sendLater()
    })
  }

  #sendIsolated(queue: PartitionQueue<T>): void {
    if (queue.isSending || queue.isEmpty || this.#isStopped) return
    const batch = this.#batchOf(queue, { ...this.#options.most }, true)
    this.#send([batch], 'isolated', () => this.#sendLater())
  }

  /** Takes as many items as one send may have. */
  #takeBatches(): Batch<T>[] {
    const room = { ...this.#options.most }
    const batches: Batch<T>[] = []
    this.#isBehind = false
    for (const queue of this.#ready) {
      if (queue.isEmpty) {
        // The items were removed with `takeWhile` while they waited.
        this.#ready.delete(queue)
        continue
      }
      const batch = this.#batchOf(queue, room, batches.length === 0)
      this.#isBehind ||= !queue.isEmpty
      if (batch.items.length === 0) break
      batches.push(batch)
      this.#ready.delete(queue)
    }
    return batches
  }

  #batchOf(queue: PartitionQueue<T>, room: Room, isFirst: boolean): Batch<T> {
    const items = queue.take(room, isFirst)
    queue.isSending = items.length > 0
    const { topic, partition } = queue
    return { topic, partition, items, queue }
  }

  #send(batches: readonly Batch<T>[], route: Route, onSettled: () => void): void {
    this.#options.send(batches, route, ({ queue }, end) => {
      if (end.kind === 'taken') queue.worked()
      else queue[end.kind](end.again)
      this.#makeReady(queue, queue.backoffMs)
      onSettled()
    })
  }
}
