import { setTimeout as delay } from 'node:timers/promises'
import { AtATime } from '../async/at-a-time.ts'
import type { EarlyPartition } from '../kafka/group/consumer.ts'
import type { PartitionReader } from '../kafka/read/partition-reader.ts'
import type { WholeRecord } from '../message/records.ts'
import type { HeldRecord, RecordContent } from '../message/held-record.ts'
import { headerText } from '../message/record-headers.ts'
import type { RecallOrder } from './order-record.ts'
import { type Place, type RecallCause, Run } from './run.ts'

export type RecallsOptions = {
  /** The retry topics that this member reads. */
  readonly topics: readonly string[]
  /** The number of partitions of each of them. */
  readonly partitions: number
  readonly early: (topic: string, id: number) => EarlyPartition | undefined
  readonly reader: Pick<PartitionReader, 'range' | 'piece' | 'topicId'>
  /** Takes a record whose message is to be tried now. */
  readonly accept: (record: HeldRecord, content: RecordContent) => void
  /** Takes a record whose message was given up. */
  readonly drop: (record: HeldRecord, content: RecordContent) => void
  /** Returns true if messages are sent to the destination: the catalog has it, and it is `on`. */
  readonly isOn: (destinationId: string) => boolean
  /** Makes the pipeline forget what it has learned about failures of the destination. */
  readonly askAgain: (destinationId: string) => void
  /**
   * The time in milliseconds after which an earlier request can't take effect any more. An uncertain message
   * isn't called back earlier, because the earlier request could then overwrite what the message corrects.
   */
  readonly uncertainForMs: number
  readonly now: () => number
  readonly log: Record<'debug' | 'info' | 'warn', (fields: object, message: string) => void>
}

/** The longest time between two readings while a run waits for room in the buffer, in milliseconds. */
const lookMs = 250
/** Time between two looks for partitions that this member has got, in milliseconds. */
const openEveryMs = 1_000
/** The least time between two readings, in milliseconds, so that each reading gives several messages. */
const pauseMs = 20
/** A run goes on in partitions that this member gets within this time after the order, in milliseconds. */
export const orderLastsMs = 120_000
/**
 * A partition that is found later than this after the order, in milliseconds, had another owner at its time.
 */
const atOnceMs = 5_000
/** The time after which a failed reading is tried again, in milliseconds. */
const againAfterMs = 1_000
const stallTimeoutMs = 10_000
const readsAtATime = 8

/**
 * Calls messages back that wait on the retry topics after failed tries. It copies nothing: it only reads
 * ahead of the member's feed, and takes records early. So each record is delivered once, whoever reaches it
 * first.
 *
 * Only the records that a commit can remember are called back: those within `maxRememberedOffsets` of the
 * committed offset. Those beyond keep their rung.
 */
export class Recalls {
  readonly #options: RecallsOptions
  readonly #runs = new Set<Run>()
  /** What the runs still have to look through, by the partition's name. No place is empty. */
  readonly #places = new Map<string, Map<Run, Place>>()
  readonly #stopping = new AbortController()
  readonly #reads = new AtATime(readsAtATime)
  #openAtMs = 0
  #loop: Promise<void> | undefined
  #wake: () => void = () => undefined

  constructor(options: RecallsOptions) {
    this.#options = options
  }

  /** Calls back what the order names. `atMs` is the time of the order, in epoch milliseconds. */
  order(order: RecallOrder, cause: RecallCause, atMs: number): void {
    const { askAgain, isOn, log } = this.#options
    const { destinationId, messageId } = order
    const isDrop = cause === 'dropped'
    if (this.#stopping.signal.aborted || !(isDrop || isOn(destinationId))) return
    log[byOrder.has(cause) ? 'info' : 'debug'](
      { destination: destinationId, messageId, cause },
      isDrop
        ? 'messages that wait for a retry are given up'
        : 'messages that wait for a retry are called back',
    )
    if (!isDrop) askAgain(destinationId)
    this.#runs.add(new Run({ order, cause, atMs, onRoom: () => this.#wake() }))
    this.#openAtMs = 0
    this.#wake()
    this.#loop ??= this.#work().finally(() => {
      this.#loop = undefined
    })
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the worker stops'))
    this.#wake()
    await this.#loop
  }

  async #work(): Promise<void> {
    const { log } = this.#options
    const { signal } = this.#stopping
    while (this.#runs.size > 0 && !signal.aborted) {
      const woken = this.#woken()
      let restMs = pauseMs
      try {
        await this.#open()
        await this.#each((topic, id, partition) => this.#read(topic, id, partition))
      } catch (error) {
        if (signal.aborted) return
        log.warn({ err: error }, 'retry topics can not be read ahead of their time, trying again')
        this.#forgetPlaces()
        restMs = againAfterMs
      }
      await delay(restMs)
      if (this.#runs.size > 0) await woken
    }
  }

  /** Resolves when a run has room again, or after a while. */
  #woken(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, lookMs)
      timer.unref()
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Forgets what was found out about the logs, because a log may have been replaced by another one. */
  #forgetPlaces(): void {
    this.#places.clear()
    for (const run of this.#runs) {
      run.opened.clear()
      run.pending = 0
    }
  }

  /** Removes the runs that are over. Finds out where the others have to look, if it is time for that. */
  async #open(): Promise<void> {
    if (performance.now() < this.#openAtMs) return
    this.#openAtMs = performance.now() + openEveryMs
    this.#end()
    const topicIds = new Map<string, Promise<string | undefined>>()
    await this.#each(async (topic, id, partition) => {
      const name = nameOf(topic, id)
      const without = [...this.#runs].filter(({ opened }) => !opened.has(name))
      if (without.length === 0) return
      const { reader, now } = this.#options
      const where = { topic, partition: id, signal: this.#stopping.signal, stallTimeoutMs }
      const present = topicIds.get(topic) ?? reader.topicId(where)
      topicIds.set(topic, present)
      // If the topic was created again, the feed finds it out, and its partition begins again.
      if (partition.topicId !== undefined && (await present) !== partition.topicId) return
      const { start, end } = await reader.range(where)
      const from = Math.max(start, partition.top)
      for (const run of without) {
        run.opened.add(name)
        const isAtOnce = now() - run.atMs < atOnceMs
        if (from < end) this.#add(name, run, { from, end, untilMs: isAtOnce ? Infinity : run.atMs })
      }
    })
  }

  #add(name: string, run: Run, place: Place): void {
    const places = this.#places.get(name) ?? new Map<Run, Place>()
    this.#places.set(name, places.set(run, place))
    run.pending++
  }

  #remove(name: string, run: Run): void {
    const places = this.#places.get(name)
    if (places?.delete(run) === true) run.pending--
    if (places?.size === 0) this.#places.delete(name)
  }

  #end(): void {
    const { isOn, now, log } = this.#options
    for (const run of this.#runs) {
      const { given, hasFailed, cause, atMs } = run
      const { destinationId, messageId } = run.order
      const isOver = hasFailed || !(cause === 'dropped' || isOn(destinationId))
      if (!isOver && (run.pending > 0 || now() - atMs <= orderLastsMs)) continue
      this.#runs.delete(run)
      for (const name of run.opened) this.#remove(name, run)
      log[given > 0 || byOrder.has(cause) ? 'info' : 'debug'](
        { destination: destinationId, messageId, cause, given, hasFailed },
        cause === 'dropped' ? 'messages were given up' : 'messages were called back',
      )
    }
  }

  /** Calls `work` for each partition that this member has started, a few at a time. */
  async #each(work: (topic: string, id: number, partition: EarlyPartition) => Promise<void>): Promise<void> {
    const { topics, partitions, early } = this.#options
    const { signal } = this.#stopping
    const all = topics.flatMap((topic) =>
      Array.from({ length: partitions }, async (_, id) => {
        const partition = early(topic, id)
        if (partition === undefined) {
          this.#leave(nameOf(topic, id))
          return
        }
        await this.#reads.take(signal)
        try {
          await work(topic, id, partition)
        } finally {
          this.#reads.end()
        }
      }),
    )
    await Promise.all(all)
  }

  /** Forgets a partition that this member has lost. If it comes back, it is looked through anew. */
  #leave(name: string): void {
    for (const run of this.#runs) if (run.opened.delete(name)) this.#remove(name, run)
  }

  async #read(topic: string, id: number, partition: EarlyPartition): Promise<void> {
    const { reader } = this.#options
    const { signal } = this.#stopping
    const name = nameOf(topic, id)
    const reading = new Reading(this.#places.get(name) ?? none)
    let from = Math.max(partition.top, reading.from)
    while (!reading.isOver && partition.mayTake && !signal.aborted) {
      const to = reading.end
      if (from < to) {
        const piece = await reader.piece({ topic, partition: id, from, to, signal, stallTimeoutMs })
        for (const record of piece.records) this.#look(reading, partition, record)
        from = piece.next
      }
      for (const run of reading.pass(from)) this.#remove(name, run)
    }
  }

  /** Gives a record to the pipeline if a run is about it. */
  #look(reading: Reading, partition: EarlyPartition, record: WholeRecord): void {
    for (const { run, place } of reading.of(headerText(record.headers, 'destination-id') ?? '')) {
      if (record.offset < place.from || record.offset >= place.end) continue
      if (!this.#isMeant(run, place, record)) continue
      if (!run.hasRoom || !partition.mayTake) {
        reading.wait(run, place, record.offset)
        continue
      }
      const held = partition.take(record)
      // While messages of the run are under way, the committed offset may still advance.
      if (held === 'beyond') reading.wait(run, place, run.isIdle ? place.end : record.offset)
      else if (held !== 'taken') this.#take(run, held, record)
    }
  }

  #take(run: Run, held: HeldRecord, content: WholeRecord): void {
    const { accept, drop } = this.#options
    const take = run.cause === 'dropped' ? drop : accept
    take(run.give(held), content)
  }

  #isMeant({ order }: Run, { untilMs }: Place, { headers, timestampMs, unreadable }: WholeRecord): boolean {
    if (unreadable !== undefined || timestampMs > untilMs) return false
    if (order.messageId !== undefined && headerText(headers, 'message-id') !== order.messageId) return false
    // What is delivered already only waits until it is known whether it has to be corrected.
    if (headerText(headers, 'delivered') !== undefined) return false
    const { uncertainForMs, now } = this.#options
    return headerText(headers, 'uncertain') === undefined || now() - timestampMs >= uncertainForMs
  }
}

/** The causes of which an operator wants to read in the log. */
const byOrder: ReadonlySet<RecallCause> = new Set<RecallCause>(['asked', 'dropped'])
const none: ReadonlyMap<Run, Place> = new Map()

type RunPlace = { readonly run: Run; readonly place: Place }

/** The runs that look through a partition together. */
class Reading {
  readonly #byDestination = new Map<string, RunPlace[]>()
  readonly #going = new Map<Run, Place>()

  /** Takes the runs that have room. */
  constructor(places: ReadonlyMap<Run, Place>) {
    for (const [run, place] of places) {
      if (!run.hasRoom) continue
      this.#going.set(run, place)
      const { destinationId } = run.order
      const others = this.#byDestination.get(destinationId)
      if (others === undefined) this.#byDestination.set(destinationId, [{ run, place }])
      else others.push({ run, place })
    }
  }

  get isOver(): boolean {
    return this.#going.size === 0
  }

  /** The offset of the first record to look at. */
  get from(): number {
    let from = Infinity
    for (const place of this.#going.values()) from = Math.min(from, place.from)
    return from
  }

  /** The offset after the last record to look at. */
  get end(): number {
    let end = 0
    for (const place of this.#going.values()) end = Math.max(end, place.end)
    return end
  }

  *of(destinationId: string): Generator<RunPlace> {
    for (const one of this.#byDestination.get(destinationId) ?? []) if (this.#going.has(one.run)) yield one
  }

  /** Makes a run wait. It goes on at the offset `from` in a later reading. */
  wait(run: Run, place: Place, from: number): void {
    place.from = from
    if (from < place.end) this.#going.delete(run)
  }

  /** Notes that all records before `offset` were looked at. Returns the runs that are done here. */
  pass(offset: number): readonly Run[] {
    const done: Run[] = []
    for (const [run, place] of this.#going) {
      place.from = Math.max(place.from, offset)
      if (place.from < place.end) continue
      done.push(run)
      this.#going.delete(run)
    }
    return done
  }
}

function nameOf(topic: string, id: number): string {
  return `${topic}/${id}`
}
