import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import type { OnClockSkew } from './clock-skew.ts'
import { compressedRequest } from '../wire/compressed-produce.ts'
import { isTooLarge } from '../wire/error-codes.ts'
import { ProduceLink, type ProduceOutcome } from './produce-link.ts'
import { within } from '../../async/within.ts'
import { messageOf } from '../wire/errors.ts'
import type { PartitionRecords, WrittenRecord } from '../../message/records.ts'

/**
 * A producer for records that may be lost. `offer` never throws, and nobody waits until the records are
 * written.
 */
export type LossyProducer = {
  /** True while the producer holds as many bytes as `maxBytes` allows. */
  readonly isFull: boolean
  /**
   * Takes a value for a partition. `records` is the number of records in the value. Drops the value if there
   * is no room.
   */
  offer(partition: number, value: Buffer, records: number): void
  /**
   * Writes the values that the producer holds, for at most `withinMs` milliseconds. Drops the values that
   * aren't written by then.
   */
  stop(withinMs: number): Promise<void>
}

export type LossyProducerOptions = {
  readonly kafka: Kafka
  readonly topic: string
  /** The most bytes that may wait or be under way to Kafka. */
  readonly maxBytes: number
  readonly onWritten: (records: number) => void
  readonly onDropped: (records: number, why: DropReason) => void
  /**
   * Called with a reason when a partition begins to fail while no other partition fails. Called with
   * `undefined` when no partition fails any more.
   */
  readonly onTrouble: (reason: string | undefined) => void
  /** Called after each write to a topic whose records have the time of the broker. */
  readonly onClockSkew?: OnClockSkew
  /** Opens connections. Default: connections to Kafka. */
  readonly openLink?: () => LossyLink
}

/** The part of `ProduceLink` that a lossy producer uses. */
export type LossyLink = Pick<ProduceLink, 'prepare' | 'leadersOf' | 'send' | 'close'>

/**
 * The reason why records were dropped. With `full`, Kafka can't keep up. With `refused`, Kafka did not take
 * them. With `unknown`, no answer came, so Kafka may have taken them.
 */
export type DropReason = 'full' | 'refused' | 'unknown'

const timeouts = { replicasTimeoutMs: 5_000, sendTimeoutMs: 10_000 }
const maxRequestBytes = 512 * 1024
const minBackoffMs = 250
const maxBackoffMs = 5_000
/**
 * The most tries to send a value. A value is sent again only if Kafka reports that it has not taken the
 * value. These tries take long enough for the leader of a partition to move to another broker.
 */
const maxTries = 5

/**
 * The time after which the failure of a partition is forgotten, in milliseconds. If failures weren't
 * forgotten, a partition that gets no further values would count as failing for good.
 */
const troubleForgottenMs = 60_000

type Waiting = {
  readonly partition: number
  readonly record: WrittenRecord
  readonly bytes: number
  readonly records: number
  tries: number
}

/** Values of one partition that are sent together. */
type Parcel = PartitionRecords & { readonly waiting: readonly Waiting[] }

/** A queue of values: for one leader, or for the partitions whose leader isn't known yet. */
class Line {
  queue: Waiting[] = []
  /** The bytes of the values in the queue, plus the bytes of the values that are being sent. */
  bytes = 0
  running: Promise<void> | undefined
  backoffMs = minBackoffMs
  readonly link: LossyLink

  constructor(link: LossyLink) {
    this.link = link
  }

  add(waiting: Waiting): void {
    this.queue.push(waiting)
    this.bytes += waiting.bytes
  }
}

export function startLossyProducer(options: LossyProducerOptions): LossyProducer {
  return new BoundedProducer(options)
}

/**
 * Sends one request at a time to each leader. Each leader has connections of its own, so a broker that hangs
 * doesn't delay the records for other brokers. Records that may have been written aren't sent again, so no
 * record is written twice.
 */
class BoundedProducer implements LossyProducer {
  readonly #options: LossyProducerOptions
  readonly #stopping = new AbortController()
  /** The queue for each leader, by the leader's node id. */
  readonly #lines = new Map<number, Line>()
  /** The queue of the values for partitions whose leader isn't known. */
  readonly #unplaced: Line
  /** The known leaders, by partition. */
  readonly #leaders = new Map<number, number>()
  /**
   * The time of each partition's last failure, by `performance.now`. A partition isn't listed if values were
   * written to it after its failure.
   */
  readonly #failed = new Map<number, number>()
  /** The pauses after which refused values are sent again. */
  readonly #pauses = new Set<Promise<void>>()
  #heldBytes = 0
  #isTroubled = false

  constructor(options: LossyProducerOptions) {
    this.#options = options
    this.#unplaced = new Line(this.#openLink())
  }

  get isFull(): boolean {
    return this.#heldBytes >= this.#options.maxBytes
  }

  offer(partition: number, value: Buffer, records: number): void {
    const line = this.#lineOf(partition)
    if (this.isFull || this.#stopping.signal.aborted || this.#isOverShare(line)) {
      this.#options.onDropped(records, 'full')
      return
    }
    this.#heldBytes += value.length
    const record = { key: String(partition), value }
    line.add({ partition, record, bytes: value.length, records, tries: 0 })
    this.#run(line)
  }

  async stop(withinMs: number): Promise<void> {
    const lines = (): Line[] => [this.#unplaced, ...this.#lines.values()]
    const allSent = async (): Promise<void> => {
      // `#place` moves values to the lines of their leaders, and these lines then run too.
      for (;;) {
        const running = [...this.#pauses, ...lines().flatMap((line) => line.running ?? [])]
        if (running.length === 0) return
        await Promise.all(running)
      }
    }
    await within(withinMs, allSent())
    this.#stopping.abort()
    for (const line of lines()) for (const waiting of line.queue.splice(0)) this.#drop(line, waiting, 'full')
    const closed = lines().map(({ link }) => link.close())
    await within(withinMs, Promise.all([...this.#pauses, ...closed]))
  }

  #openLink(): LossyLink {
    const { kafka, openLink, onClockSkew } = this.#options
    return openLink?.() ?? new ProduceLink(kafka, timeouts, { requestOf: compressedRequest, onClockSkew })
  }

  #lineOf(partition: number): Line {
    const leader = this.#leaders.get(partition)
    if (leader === undefined) return this.#unplaced
    let line = this.#lines.get(leader)
    if (line === undefined) {
      line = new Line(this.#openLink())
      this.#lines.set(leader, line)
    }
    return line
  }

  /**
   * Returns true if the values for one leader take at least as many bytes as are still free in the producer.
   * This limits a leader that hangs to half of the room. Always returns false while there is only one leader.
   */
  #isOverShare(line: Line): boolean {
    return this.#lines.size > 1 && line.bytes >= this.#options.maxBytes - this.#heldBytes
  }

  #run(line: Line): void {
    line.running ??= this.#runLine(line)
  }

  async #runLine(line: Line): Promise<void> {
    const { signal } = this.#stopping
    // All values that are offered in this turn of the event loop are sent together.
    await Promise.resolve()
    while (line.queue.length > 0 && !signal.aborted) {
      if (await (line === this.#unplaced ? this.#place() : this.#sendSome(line))) {
        line.backoffMs = minBackoffMs
        continue
      }
      await delay(line.backoffMs, undefined, { signal }).catch(() => undefined)
      line.backoffMs = Math.min(2 * line.backoffMs, maxBackoffMs)
      if (line !== this.#unplaced) this.#placeAnew(line)
    }
    line.running = undefined
  }

  /**
   * Looks up the missing leaders of partitions, and moves each value to the queue for its partition's leader.
   * Returns false if no broker tells the leaders.
   */
  async #place(): Promise<boolean> {
    const line = this.#unplaced
    const { topic } = this.#options
    let leaders: ReadonlyMap<number, number>
    try {
      leaders = await line.link.leadersOf(topic)
    } catch (error) {
      for (const { partition } of line.queue) this.#failed.set(partition, performance.now())
      this.#tell(messageOf(error))
      return false
    }
    if (this.#stopping.signal.aborted) return false
    this.#leaders.clear()
    for (const [partition, leader] of leaders) this.#leaders.set(partition, leader)
    const leaderless: Waiting[] = []
    for (const one of line.queue.splice(0)) {
      const to = this.#lineOf(one.partition)
      if (to === line) {
        leaderless.push(one)
        continue
      }
      line.bytes -= one.bytes
      to.add(one)
      this.#run(to)
    }
    for (const [partition, values] of Map.groupBy(leaderless, (one) => one.partition)) {
      this.#failedToSend(partition, `${topic}/${partition} has no leader, or does not exist`)
      this.#tryLater(line, values)
    }
    this.#closeUnused(leaders)
    return true
  }

  /** Sends the next values of a queue. Returns false if none was stored, and a partition got no answer. */
  async #sendSome(line: Line): Promise<boolean> {
    try {
      // If the connections can't be opened, nothing was sent, so the values can stay in the queue.
      await line.link.prepare(this.#options.topic)
    } catch (error) {
      for (const { partition } of line.queue) this.#failedToSend(partition, messageOf(error))
      return false
    }
    const parcels = parcelsOf(this.#options.topic, takeSome(line))
    let isTaken = false
    let isAnswered = true
    await line.link.send(parcels, (parcel, outcome) => {
      isTaken ||= outcome.isWritten
      isAnswered &&= outcome.isWritten || outcome.errorCode !== undefined
      if (outcome.isWritten) this.#written(line, parcel)
      else this.#unwritten(line, parcel, outcome)
    })
    return isTaken || isAnswered
  }

  #written(line: Line, { partition, waiting }: Parcel): void {
    for (const { bytes, records } of waiting) {
      this.#heldBytes -= bytes
      line.bytes -= bytes
      this.#options.onWritten(records)
    }
    const forgottenMs = performance.now() - troubleForgottenMs
    this.#failed.delete(partition)
    for (const [other, failedMs] of this.#failed) if (failedMs < forgottenMs) this.#failed.delete(other)
    if (this.#failed.size === 0) this.#tell(undefined)
  }

  #unwritten(
    line: Line,
    { partition, waiting }: Parcel,
    { reason, errorCode }: Extract<ProduceOutcome, { isWritten: false }>,
  ): void {
    this.#failedToSend(partition, reason)
    if (errorCode === undefined) for (const one of waiting) this.#drop(line, one, 'unknown')
    else if (isTooLarge(errorCode)) for (const one of waiting) this.#drop(line, one, 'refused')
    else {
      // The partition may have another leader by now.
      this.#leaders.delete(partition)
      this.#tryLater(line, waiting)
    }
  }

  /**
   * Counts a failed try of values of one partition. Either Kafka hasn't taken the values, or the partition
   * has no leader. Drops the values that have no tries left. Moves the other values after a pause. Values of
   * other partitions don't wait for the end of the pause, because their leader may take them all the time.
   */
  #tryLater(line: Line, values: readonly Waiting[]): void {
    const { signal } = this.#stopping
    const again: Waiting[] = []
    for (const one of values) {
      if (++one.tries < maxTries && !signal.aborted) again.push(one)
      else this.#drop(line, one, 'refused')
    }
    if (again.length === 0) return
    const tries = again.reduce((most, one) => Math.max(most, one.tries), 0)
    const pause = delay(minBackoffMs * 2 ** (tries - 1), undefined, { signal })
      .catch(() => undefined)
      .then(() => {
        this.#pauses.delete(pause)
        for (const one of again) {
          if (signal.aborted) this.#drop(line, one, 'refused')
          else this.#move(line, one)
        }
      })
    this.#pauses.add(pause)
  }

  /**
   * Moves a value to the queue for partitions whose leader isn't known, because the value's partition may
   * have another leader by now.
   */
  #move(line: Line, one: Waiting): void {
    this.#leaders.delete(one.partition)
    line.bytes -= one.bytes
    this.#unplaced.add(one)
    this.#run(this.#unplaced)
  }

  /**
   * Moves all values of one queue to the queue for partitions whose leader isn't known. Called when the
   * leader of this queue has taken none of the values that were sent.
   */
  #placeAnew(line: Line): void {
    for (const one of line.queue.splice(0)) this.#move(line, one)
  }

  #closeUnused(leaders: ReadonlyMap<number, number>): void {
    const used = new Set(leaders.values())
    for (const [leader, line] of this.#lines) {
      if (used.has(leader) || line.running !== undefined) continue
      this.#lines.delete(leader)
      void line.link.close()
    }
  }

  #drop(line: Line, { bytes, records }: Waiting, why: DropReason): void {
    this.#heldBytes -= bytes
    line.bytes -= bytes
    this.#options.onDropped(records, why)
  }

  #failedToSend(partition: number, reason: string): void {
    this.#failed.set(partition, performance.now())
    this.#tell(reason)
  }

  #tell(trouble: string | undefined): void {
    const isTroubled = trouble !== undefined
    if (isTroubled === this.#isTroubled) return
    this.#isTroubled = isTroubled
    this.#options.onTrouble(trouble)
  }
}

/**
 * Removes the values that are sent next from the queue. `bytes` of the `Line` still includes these values.
 */
function takeSome({ queue }: Line): Waiting[] {
  let bytes = 0
  let count = 0
  while (count < queue.length && bytes < maxRequestBytes) bytes += queue[count++]?.bytes ?? 0
  return queue.splice(0, count)
}

function parcelsOf(topic: string, waiting: readonly Waiting[]): Parcel[] {
  const byPartition = Map.groupBy(waiting, ({ partition }) => partition)
  return [...byPartition].map(([partition, ofIt]) => ({
    topic,
    partition,
    records: ofIt.map(({ record }) => record),
    waiting: ofIt,
  }))
}
