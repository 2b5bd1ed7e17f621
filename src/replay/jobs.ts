import { AuditTrail } from './audit-trail.ts'
import type { JobOrder, JobProgress, JobRecord, JobRequest } from './job.ts'

/** A replay, according to the records of `replay-jobs`. */
export type Job = {
  readonly order: JobOrder
  readonly wish: JobRequest
  /** The progress of the replay. `undefined` if no owner has started the replay. */
  readonly progress: JobProgress | undefined
}

/**
 * The state of a replay. With `waiting`, the replay waits for an owner, which takes only seconds if a worker
 * runs. With `delivering`, all of its records are handed over, and some of them still wait for their turn.
 * With `stopped`, the replay was stopped, but records that its owner is writing at this moment may
 * still arrive.
 */
export type JobState = 'waiting' | 'running' | 'delivering' | 'stopped' | 'done'

export function stateOf({ wish, progress }: Job): JobState {
  if (progress?.isOver === true) return 'done'
  if (wish.state === 'stop') return 'stopped'
  if (progress === undefined) return 'waiting'
  return progress.isHandedOver === true ? 'delivering' : 'running'
}

type Known = Pick<Job, 'wish' | 'progress'>

/**
 * Limit on the replays that are done and whose records another replay leaves out. The offsets of partitions
 * take most of the memory of a replay, and a worker remembers all replays since its start.
 */
const mostRemembered = 1_000

/** The content of the records of `replay-jobs` that were read so far. */
export class Jobs {
  readonly #jobs = new Map<string, Job>()
  /**
   * The requests and the progress of replays whose order hasn't been read yet. They may come before the
   * order: if an order is written again, compaction keeps only the later record of it.
   */
  readonly #loose = new Map<string, Partial<Known>>()
  readonly #isAudited: boolean
  readonly #audit = new AuditTrail()
  #tokens: readonly string[] | undefined
  /** The ids of the replays that are done and whose ranges are remembered. The first was done first. */
  readonly #done = new Set<string>()
  #changes = 0

  /** @param isAudited true to keep the audit trail too, and the offsets of replays that are done */
  constructor(isAudited = false) {
    this.#isAudited = isAudited
  }

  get(id: string): Job | undefined {
    return this.#jobs.get(id)
  }

  all(): IterableIterator<Job> {
    return this.#jobs.values()
  }

  /** Rises with each record that is taken. */
  get changes(): number {
    return this.#changes
  }

  /** The replays that aren't done, and the last thousand of those that are. */
  *remembered(): Generator<Job> {
    for (const job of this.#jobs.values())
      if (job.progress?.isOver !== true || this.#done.has(job.order.id)) yield job
  }

  /** The audit trail. It is empty without `isAudited`. */
  get audit(): AuditTrail {
    return this.#audit
  }

  /** The tokens of the admin API that were seen last. `undefined` if none were. */
  get tokens(): readonly string[] | undefined {
    return this.#tokens
  }

  /** Adds a record of `replay-jobs`. `offset` is its place in the topic. */
  take(record: JobRecord, offset = this.#changes): void {
    this.#changes++
    switch (record.kind) {
      case 'order':
        this.#takeOrder(record.order)
        return
      case 'wish':
        this.#change(record.id, { wish: record.wish })
        return
      case 'progress':
        this.#change(record.id, { progress: record.progress })
        return
      case 'audit':
        if (this.#isAudited) this.#audit.take(record.entry, offset)
        return
      case 'tokens':
        this.#tokens = record.tokens
    }
  }

  #takeOrder(order: JobOrder): void {
    const loose = this.#loose.get(order.id)
    this.#loose.delete(order.id)
    const known = this.#jobs.get(order.id)
    const wish = known?.wish ?? loose?.wish ?? { state: 'run', by: order.by, atMs: order.atMs }
    this.#keep({ order, wish, progress: known?.progress ?? loose?.progress })
  }

  #change(id: string, { wish, progress }: Partial<Known>): void {
    const job = this.#jobs.get(id)
    const known = job ?? this.#loose.get(id)
    const next = {
      ...(wish !== undefined && { wish }),
      ...(progress !== undefined && isNewer(progress, known?.progress) && { progress }),
    }
    if (job === undefined) this.#loose.set(id, { ...known, ...next })
    else this.#keep({ ...job, ...next })
  }

  /**
   * Keeps a replay. The offsets of its partitions take most of its memory. So a worker drops what it doesn't
   * need for replays that are done.
   */
  #keep(job: Job): void {
    const { order, progress } = job
    if (progress?.isOver === true && !this.#done.has(order.id)) {
      this.#done.add(order.id)
      const [first] = this.#done
      if (this.#done.size > mostRemembered && first !== undefined) this.#forget(first)
    }
    const isSlim = !this.#isAudited && progress?.isOver === true
    this.#jobs.set(order.id, isSlim ? { ...job, progress: { ...progress, offsets: [] } } : job)
  }

  #forget(id: string): void {
    this.#done.delete(id)
    const job = this.#jobs.get(id)
    if (this.#isAudited || job?.progress === undefined) return
    const { order, progress } = job
    this.#jobs.set(id, {
      ...job,
      order: { ...order, ranges: [] },
      progress: { ...progress, offsets: [], unsent: [] },
    })
  }
}

/**
 * Returns true if `progress` replaces `known`. If two owners wrote the same term, the term belongs to the
 * owner whose record came first.
 */
function isNewer(progress: JobProgress, known: JobProgress | undefined): boolean {
  if (known === undefined || progress.term > known.term) return true
  if (progress.term < known.term) return false
  return progress.owner === known.owner ? progress.note >= known.note : progress.note > known.note
}
