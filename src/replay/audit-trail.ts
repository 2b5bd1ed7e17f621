import type { AuditEntry } from './job.ts'

/** One or more equal entries of the audit trail. Its `records` is that of the last one. */
export type FoldedEntry = AuditEntry & {
  /** The offset of its first record in `replay-jobs`. It sorts the entries, and never changes. */
  readonly place: number
  /** How many equal entries it stands for. `atMs` is the time of the first, and `lastMs` that of the last. */
  readonly count: number
  readonly lastMs: number
}

export type AuditQuery = {
  /** The time range, in epoch milliseconds: at least `fromMs`, and lower than `toMs`. */
  readonly fromMs?: number | undefined
  readonly toMs?: number | undefined
  readonly job?: string | undefined
  /** Only entries whose `place` is lower. */
  readonly before?: number | undefined
  readonly limit?: number | undefined
  readonly isMeant?: ((entry: FoldedEntry) => boolean) | undefined
}

/** Entries newest first. `next` is the `before` of the next page; `undefined` if there is none. */
export type AuditPage = { readonly entries: readonly FoldedEntry[]; readonly next: number | undefined }

/** How long after the first entry an equal one is folded into it, in milliseconds. */
const foldMs = 3_600_000
const mostEntries = 20_000
/**
 * The share that stays when there are too many entries. So the work of forgetting is done once in a while.
 */
const keptShare = 0.9

type Growing = { -readonly [Key in keyof FoldedEntry]: FoldedEntry[Key] }

/**
 * The audit trail of the topic `replay-jobs`, as far as it is in memory: up to 20,000 entries. Equal actions
 * of the same person on the same object within an hour are one entry. When there are too many entries, those
 * are forgotten that are the oldest of whoever has most of them. So nobody can push the actions of others out
 * of the trail.
 */
export class AuditTrail {
  #entries: Growing[] = []
  /** The last entry of each action, person and object. */
  readonly #last = new Map<string, Growing>()
  #completeSinceMs: number | undefined

  /** All entries, newest last. */
  get all(): readonly FoldedEntry[] {
    return this.#entries
  }

  /** No entry later than this time was forgotten. `undefined` if none was. */
  get completeSinceMs(): number | undefined {
    return this.#completeSinceMs
  }

  /** Adds an entry. Each has a higher `place` than the one before. */
  take(entry: AuditEntry, place: number): void {
    const key = keyOf(entry)
    const last = this.#last.get(key)
    if (last !== undefined && entry.atMs < last.atMs + foldMs) {
      last.count++
      last.lastMs = Math.max(last.lastMs, entry.atMs)
      last.records = entry.records
      return
    }
    const added = { ...entry, place, count: 1, lastMs: entry.atMs }
    this.#entries.push(added)
    this.#last.set(key, added)
    if (this.#entries.length > mostEntries) this.#forget()
  }

  page({
    fromMs = -Infinity,
    toMs = Infinity,
    job,
    before = Infinity,
    limit = Infinity,
    isMeant = () => true,
  }: AuditQuery): AuditPage {
    const entries: FoldedEntry[] = []
    for (let index = this.#entries.length - 1; index >= 0; index--) {
      const entry = this.#entries[index]
      if (entry === undefined || entry.place >= before) continue
      if (entry.lastMs < fromMs || entry.atMs >= toMs || (job !== undefined && entry.job !== job)) continue
      if (!isMeant(entry)) continue
      if (entries.length === limit) return { entries, next: entries.at(-1)?.place }
      entries.push({ ...entry })
    }
    return { entries, next: undefined }
  }

  /** Leaves each person the same number of entries at most, the newest. */
  #forget(): void {
    const left = new Map<string, number>()
    for (const { by } of this.#entries) left.set(by, (left.get(by) ?? 0) + 1)
    const most = keptShare * mostEntries
    const share = fairShare([...left.values()], most)
    // If there are more people than entries, the oldest entries go, whoever has them.
    const oldest = share < 1 ? this.#entries.at(-most)?.place : undefined
    this.#entries = this.#entries.filter((entry) => {
      const count = left.get(entry.by) ?? 0
      left.set(entry.by, count - 1)
      if (oldest === undefined ? count <= share : entry.place >= oldest) return true
      this.#completeSinceMs = Math.max(this.#completeSinceMs ?? -Infinity, entry.lastMs)
      if (this.#last.get(keyOf(entry)) === entry) this.#last.delete(keyOf(entry))
      return false
    })
  }
}

/** Returns the largest number of entries that each may have, so that all together have at most `most`. */
function fairShare(counts: readonly number[], most: number): number {
  let [left, owners] = [most, counts.length]
  for (const count of counts.toSorted((one, other) => one - other)) {
    if (count * owners > left) return Math.floor(left / owners)
    left -= count
    owners--
  }
  return Infinity
}

function keyOf({ by, action, job, destination, detail }: AuditEntry): string {
  return JSON.stringify([by, action, job, destination, detail])
}
