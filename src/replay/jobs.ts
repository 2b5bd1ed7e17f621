import type { AuditEntry, JobOrder, JobProgress, JobRecord, JobRequest } from './job.ts'

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

const mostAudited = 10_000

/** The content of the records of `replay-jobs` that were read so far. */
export class Jobs {
  readonly #jobs = new Map<string, Job>()
  /**
   * The requests and the progress of replays whose order hasn't been read yet. They may come before the
   * order: if an order is written again, compaction keeps only the later record of it.
   */
  readonly #loose = new Map<string, Partial<Known>>()
  readonly #audit: AuditEntry[] | undefined

  /** @param isAudited true to keep the audit trail too, and the offsets of replays that are done */
  constructor(isAudited = false) {
    this.#audit = isAudited ? [] : undefined
  }

  get(id: string): Job | undefined {
    return this.#jobs.get(id)
  }

  all(): IterableIterator<Job> {
    return this.#jobs.values()
  }

  /**
   * The audit trail, newest entry last. It has at most twenty thousand entries. At least the last ten
   * thousand entries are kept.
   */
  get audit(): readonly AuditEntry[] {
    return this.#audit ?? []
  }

  /** Adds a record of `replay-jobs`. */
  take(record: JobRecord): void {
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
        this.#audit?.push(record.entry)
        if ((this.#audit?.length ?? 0) > 2 * mostAudited) this.#audit?.splice(0, mostAudited)
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
   * Keeps a replay. The offsets of its partitions take most of its memory. A worker remembers all replays
   * since its start, so it drops the offsets of replays that are done.
   */
  #keep(job: Job): void {
    const { order, progress } = job
    const kept =
      this.#audit === undefined && progress?.isOver === true
        ? { ...job, order: { ...order, ranges: [] }, progress: { ...progress, offsets: [] } }
        : job
    this.#jobs.set(order.id, kept)
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
