import { setTimeout as delay } from 'node:timers/promises'
import { TokenBucket } from '../async/token-bucket.ts'
import type { Chosen, LeftOutReason, SourceRecord } from './chosen.ts'
import type { OutboundRecord } from '../message/records.ts'
import type { AuditAction, JobProgress, OffsetRange } from './job.ts'
import type { JobLog } from './job-log.ts'
import type { Job } from './jobs.ts'
import { nextPartition, type Pieces } from './pieces.ts'
import { bytesOf, type Tally, TallyBuilder } from './replay-tally.ts'
import { knowsUnsent, Unsent } from './unsent.ts'

export type JobRunOptions = {
  readonly job: Job
  /** The name of this process. No other process has the same name. */
  readonly owner: string
  readonly log: JobLog
  readonly pieces: Pieces
  readonly choose: (record: SourceRecord) => Chosen
  /** Writes a record. Resolves once Kafka has acknowledged it, or with `refused` if no topic accepts it. */
  readonly produce: (record: OutboundRecord) => Promise<'acknowledged' | 'refused'>
  /**
   * Returns true if the consumer group has heard from this process within the session timeout. In that case,
   * no other process owns the units of this process.
   */
  readonly isOwner: () => boolean
  /**
   * Returns how many records that replays have written are not settled yet. With a destination, those that
   * wait for other destinations aren't counted.
   */
  readonly backlog: (destinationId: string | undefined) => Promise<number>
  /** Follows the records of a replay that have been written, until they are settled. */
  readonly remainder: (written: Written) => Remainder
  readonly onSent: (count: number) => void
  readonly signal: AbortSignal
}

/**
 * The records that a replay has written. `destinationIds`: their destinations; `undefined` if these aren't
 * all known, because another process has written some of them.
 */
export type Written = { readonly records: number; readonly destinationIds: ReadonlySet<string> | undefined }

export type Remainder = {
  /** Returns how many records aren't settled yet, at most. `undefined`: not known now. */
  left(signal: AbortSignal): Promise<number | undefined>
}

/**
 * The end of one owner's work on a replay. With `over`, the replay is complete. With `left`, the replay was
 * stopped, or belongs to another owner.
 */
export type RunEnd = { readonly kind: 'over' | 'left'; readonly done: Tally }

const batchesPerSecond = 4
const mostAtOnce = 5_000
const mostBytesAtOnce = 4 * 1024 ** 2
/**
 * How long an owner waits before it continues a replay that was begun earlier, in milliseconds. The last
 * records of a former owner that was killed may still be under way to the destinations. Because of the wait,
 * both owners together keep to the limit on records per second.
 */
const settleMs = 2_000
const noteEveryMs = 1_000
/**
 * When a partition is set aside, and for how long, in milliseconds, while there are others to read. A
 * partition without a leader may have one again after seconds.
 */
const aside = { afterMs: 2_000, forMs: 30_000 } as const
const flushAfterMs = 250
const backlogEveryMs = 1_000
/**
 * Time between two looks at what isn't settled yet, in milliseconds: at first, and later. What waits for a
 * paused destination may wait for days.
 */
const remainderEveryMs = { early: 1_000, late: 5_000, earlyFor: 60_000 }
/**
 * Limit on the records that are written but not settled yet, in seconds of the replay's rate. Because of
 * this limit, deliveries end soon after a replay is stopped.
 */
const backlogSeconds = 5
const leastBacklog = 2_000

/**
 * The work of one owner on a replay. Once Kafka has all records of a batch, the position after the batch is
 * written. Only then does the next batch begin. So another owner repeats at most one batch.
 */
export class JobRun {
  readonly #options: JobRunOptions
  readonly #bucket: TokenBucket
  readonly #mostAtOnce: number
  readonly #offsets: number[]
  readonly #sum: TallyBuilder
  readonly #unsent: Unsent
  /** False if a former owner of an earlier version has left out records without noting which. */
  readonly #knowsUnsent: boolean
  readonly #term: number
  #note: number
  #notedMs = performance.now()
  #flushedMs = performance.now()
  #backlogMs = -Infinity
  /** The records of the next batch, and where they were read. */
  #batch: { readonly record: OutboundRecord; readonly from: SourceRecord }[] = []
  #batchBytes = 0
  #isOver = false
  #isHandedOver: boolean
  #waits: number | undefined
  /** The partitions that can't be read now, and until when they are left alone, by `performance.now`. */
  readonly #asideUntilMs = new Map<number, number>()
  /** The destinations of the records that this owner has written. */
  readonly #destinationIds = new Set<string>()

  constructor(options: JobRunOptions) {
    const { order, progress } = options.job
    this.#options = options
    // A batch is sent as soon as one token is available. The missing tokens become a debt, which later tokens
    // repay.
    this.#bucket = new TokenBucket({ perSecond: order.perSecond, burst: 1 }, performance.now())
    this.#mostAtOnce = Math.min(mostAtOnce, Math.ceil(order.perSecond / batchesPerSecond))
    this.#offsets = order.ranges.map(({ start }, partition) => progress?.offsets[partition] ?? start)
    this.#sum = new TallyBuilder(progress?.done)
    this.#unsent = new Unsent(progress?.unsent)
    this.#knowsUnsent = knowsUnsent(progress)
    this.#isHandedOver = progress?.isHandedOver ?? false
    // If the same owner tries again, it continues its term. Each term has a key of its own in `replay-jobs`,
    // and compaction keeps every key. If each try had a new term, an owner that fails every five seconds
    // would add 17,000 keys a day.
    const former = progress?.owner === options.owner ? progress : undefined
    this.#term = former?.term ?? (progress?.term ?? 0) + 1
    this.#note = former === undefined ? 0 : former.note + 1
  }

  get term(): number {
    return this.#term
  }

  /** True if all records are written, and this run only waits until they are settled. */
  get isHandedOver(): boolean {
    return this.#isHandedOver
  }

  async go(): Promise<RunEnd> {
    try {
      if (!(await this.#claim())) return this.#end('left')
      await this.#sendAll()
      await this.#untilSettled()
      this.#isOver = true
      await this.#writeNote()
      await this.#tell('done')
      return this.#end('over')
    } catch (error) {
      if (!this.#options.signal.aborted && !(error instanceof Left)) throw error
      return this.#end('left')
    }
  }

  #end(kind: RunEnd['kind']): RunEnd {
    return { kind, done: this.#sum.tally }
  }

  /** Writes that this process owns the replay. Resolves with false if another owner was first. */
  async #claim(): Promise<boolean> {
    const { log, job, owner, signal } = this.#options
    await this.#writeNote()
    await log.update()
    const known = log.jobs.get(job.order.id)?.progress
    if (known?.term !== this.#term || known.owner !== owner) return false
    const former = job.progress
    if (former === undefined) await this.#tell('begun')
    // If the same owner tries again, nothing is written. An owner that fails for days would fill the audit
    // trail with its tries.
    else if (former.owner !== owner) await this.#tell('taken_over')
    if (former !== undefined) await delay(settleMs, undefined, { signal })
    return true
  }

  async #sendAll(): Promise<void> {
    const { order } = this.#options.job
    for (let last = -1; ;) {
      const partition = this.#nextPartition(order.ranges, last)
      if (partition === undefined) break
      last = partition
      const to = order.ranges[partition]?.end ?? 0
      await this.#takePiece(partition, to)
      if (this.#batch.length > 0 && performance.now() - this.#flushedMs > flushAfterMs) await this.#flush()
      else if (this.#batch.length === 0 && performance.now() - this.#notedMs > noteEveryMs)
        await this.#writeNote()
    }
    await this.#flush()
  }

  /** Returns the next partition to read. One that was set aside comes only if there is no other. */
  #nextPartition(ranges: readonly OffsetRange[], last: number): number | undefined {
    const isAside = (partition: number) => this.#isAside(partition)
    return nextPartition(ranges, this.#offsets, last, isAside) ?? nextPartition(ranges, this.#offsets, last)
  }

  #isAside(partition: number): boolean {
    return (this.#asideUntilMs.get(partition) ?? 0) > performance.now()
  }

  /**
   * Reads a piece. If the partition can't be read now, for example because it has no leader, sets it aside
   * for a while, as long as there are others to read. Resolves with `aside` then.
   */
  async #readPiece(partition: number, to: number): Promise<Awaited<ReturnType<Pieces['piece']>> | 'aside'> {
    const { job, pieces, signal } = this.#options
    const other = nextPartition(
      job.order.ranges,
      this.#offsets,
      partition,
      (one) => one === partition || this.#isAside(one),
    )
    const where = { partition, from: this.#offsets[partition] ?? 0, to, signal }
    if (other === undefined) return pieces.piece(where)
    try {
      return await pieces.piece({ ...where, stallTimeoutMs: aside.afterMs })
    } catch (error) {
      if (signal.aborted) throw error
      this.#asideUntilMs.set(partition, performance.now() + aside.forMs)
      return 'aside'
    }
  }

  /** Waits until none of the records that were written waits any more. */
  async #untilSettled(): Promise<void> {
    const { remainder, signal } = this.#options
    const { records } = this.#sum.tally
    if (records === 0) return
    this.#isHandedOver = true
    await this.#writeNote()
    const written = { records, destinationIds: this.#knownDestinations() }
    const following = remainder(written)
    const startedMs = performance.now()
    for (;;) {
      const left = await following.left(signal)
      signal.throwIfAborted()
      const isChanged = left !== this.#waits
      this.#waits = left
      if (left === 0) return
      if (isChanged) await this.#writeNote()
      const isEarly = performance.now() - startedMs < remainderEveryMs.earlyFor
      await delay(isEarly ? remainderEveryMs.early : remainderEveryMs.late, undefined, { signal })
    }
  }

  #knownDestinations(): ReadonlySet<string> | undefined {
    const { order, progress } = this.#options.job
    const { destinationId } = order.selection
    if (destinationId !== undefined) return new Set([destinationId])
    return (progress?.done.records ?? 0) === 0 ? this.#destinationIds : undefined
  }

  async #takePiece(partition: number, to: number): Promise<void> {
    const { choose, signal } = this.#options
    const piece = await this.#readPiece(partition, to)
    if (piece === 'aside') return
    if (piece === 'lost') return this.#giveUp(lostOf(partition, to))
    if (piece === 'recreated') return this.#giveUp(recreated)
    const { records, next } = piece
    const startedMs = performance.now()
    const flushed = this.#flushedMs
    for (const record of records) {
      const chosen = choose(record)
      if (chosen.kind === 'left_out') await this.#leaveOut(record, chosen.why)
      else if (chosen.kind === 'send') this.#add(record, chosen.records)
      this.#offsets[partition] = record.offset + 1
      if (this.#isFull) await this.#flush()
    }
    this.#offsets[partition] = next
    // A piece has the records of one fetch. If no batch was sent for a piece, the limit on records per second
    // doesn't slow this loop down. So the run waits for as long as the piece took, and leaves half of the
    // time to the deliveries of this process.
    if (this.#flushedMs === flushed) await delay(performance.now() - startedMs, undefined, { signal })
  }

  /**
   * Counts a record that is left out. But if the destination is off, was removed or is paused automatically,
   * all later records would be left out too. In this case, stops the replay, so that an operator can decide.
   */
  async #leaveOut(record: SourceRecord, why: LeftOutReason): Promise<void> {
    const { destinationId } = this.#options.job.order.selection
    const problem = destinationId === undefined ? undefined : problemFor(destinationId, why)
    if (problem === undefined) {
      this.#sum.leaveOut(why)
      this.#unsent.leftOut(record, why)
      return
    }
    await this.#giveUp(problem)
  }

  /** Writes the records that were read, and stops the replay. */
  async #giveUp(problem: string): Promise<never> {
    await this.#flush()
    await this.#stopSince(problem)
    throw new Left()
  }

  async #stopSince(detail: string): Promise<void> {
    const { log, job, owner } = this.#options
    const wish = { state: 'stop', by: owner, atMs: Date.now(), detail } as const
    await log.write({ kind: 'wish', id: job.order.id, wish })
    await this.#tell('stopped', detail)
  }

  #add(from: SourceRecord, records: readonly OutboundRecord[]): void {
    this.#unsent.sent(from)
    for (const record of records) {
      const destinationId = record.headers['destination-id']
      if (destinationId !== undefined) this.#destinationIds.add(destinationId)
      this.#batch.push({ record, from })
      this.#batchBytes += bytesOf(record)
    }
  }

  get #isFull(): boolean {
    return this.#batch.length >= this.#mostAtOnce || this.#batchBytes >= mostBytesAtOnce
  }

  async #flush(): Promise<void> {
    const batch = this.#batch
    if (batch.length === 0) return
    await this.#waitForTurn(batch.length)
    const { isOwner, produce, onSent, signal } = this.#options
    signal.throwIfAborted()
    // If this process was suspended for some time, another process may own the replay now.
    if (!isOwner()) throw new Left()
    const results = await Promise.all(batch.map(({ record }) => produce(record)))
    this.#batch = []
    this.#batchBytes = 0
    for (const [index, { record, from }] of batch.entries()) {
      if (results[index] === 'acknowledged') {
        this.#sum.send(record)
        continue
      }
      this.#sum.leaveOut('too_large')
      this.#unsent.refused(from)
    }
    onSent(results.filter((result) => result === 'acknowledged').length)
    await this.#writeNote()
    this.#flushedMs = performance.now()
  }

  async #waitForTurn(count: number): Promise<void> {
    const { signal } = this.#options
    while (await this.#isBehind()) await delay(backlogEveryMs, undefined, { signal })
    for (;;) {
      const waitMs = this.#bucket.take(performance.now(), count)
      if (waitMs === 0) return
      await delay(waitMs, undefined, { signal })
    }
  }

  async #isBehind(): Promise<boolean> {
    const nowMs = performance.now()
    if (nowMs - this.#backlogMs < backlogEveryMs) return false
    this.#backlogMs = nowMs
    const { backlog, job } = this.#options
    if (
      (await backlog(job.order.selection.destinationId)) <=
      Math.max(leastBacklog, backlogSeconds * job.order.perSecond)
    )
      return false
    this.#backlogMs = -Infinity
    return true
  }

  async #writeNote(): Promise<void> {
    const { log, job, owner } = this.#options
    const progress: JobProgress = {
      term: this.#term,
      note: this.#note++,
      owner,
      offsets: [...this.#offsets],
      done: this.#sum.tally,
      ...(this.#knowsUnsent && { unsent: this.#unsent.ranges }),
      atMs: Date.now(),
      isOver: this.#isOver,
      ...(this.#isHandedOver && { isHandedOver: true, waits: this.#waits }),
    }
    await log.write({ kind: 'progress', id: job.order.id, progress })
    this.#notedMs = performance.now()
  }

  #tell(action: AuditAction, detail = `owner number ${this.#term}`): Promise<void> {
    const { log, job, owner } = this.#options
    const { records } = this.#sum.tally
    const atMs = Date.now()
    const entry = { atMs, by: owner, action, job: job.order.id, records, detail }
    return log.write({ kind: 'audit', key: `${atMs}-${job.order.id}-${action}-${this.#term}`, entry })
  }
}

/** The error that ends an owner's work because the replay was stopped or belongs to another owner. */
class Left extends Error {}

/** Returns a text that says why a replay can't continue, and what to do. */
function lostOf(partition: number, to: number): string {
  return `partition ${partition} ends before offset ${to}, up to which the replay reads: its topic was created again, or has lost records. Request a new replay`
}

/** Says why a replay can't continue if its topic was created again since the replay was requested. */
const recreated =
  'its topic was deleted and created again since it was requested, so the offsets that it reads have other records now. Request a new replay'

/**
 * Returns a text that says why no record can be sent to a destination, and what to do. Returns `undefined` if
 * other records can be sent.
 */
function problemFor(destinationId: string, why: LeftOutReason): string | undefined {
  switch (why) {
    case 'destination_off':
      return `the destination ${destinationId} is off: switch it on, and resume the replay`
    case 'destination_removed':
      return `the catalog has no destination ${destinationId}: put it back, and resume the replay`
    case 'auto_paused':
      return `Sluice has paused the destination ${destinationId}: resume that first (sluice destinations resume ${destinationId}), and then the replay`
    default:
      return undefined
  }
}
