import { sumOf, type Notice } from './notice.ts'
import { decodeRecord, type FailingHook, type Report, type Told } from './notice-record.ts'
import { PauseBook } from './pause-book.ts'
import type { KeyedRecord } from '../message/records.ts'

/** A record of the topic `notices`, with its offset. */
export type NoticeRecord = Pick<KeyedRecord, 'offset' | 'key' | 'value'>

/**
 * The counts of one kind for a destination, by reason. They began after the destination's last notice of this
 * kind.
 */
export type Tally = { readonly sinceMs: number; readonly counts: Readonly<Record<string, number>> }

export type CountedKind = 'paced' | 'dead_letters'
export const countedKinds: readonly CountedKind[] = ['paced', 'dead_letters']

type SeenReport = Pick<Report, 'failing'> & {
  readonly refusing: readonly FailingHook[]
  readonly seenMs: number
}

/** A failing hook, according to the reports of all processes together. */
export type SeenHook = FailingHook

/**
 * The content of the records of the topic `notices` that this process has read so far. Processes that have
 * read the same records have the same content.
 */
export class Board {
  readonly #reports = new Map<string, SeenReport>()
  readonly #answered = new Map<string, number>()
  /** The time when each hook last accepted a request, of those that any process has reported as refusing. */
  readonly #accepted = new Map<string, number>()
  readonly #told = new Map<string, Told>()
  readonly #tallies: Readonly<Record<CountedKind, Map<string, Tally>>> = {
    paced: new Map(),
    dead_letters: new Map(),
  }

  readonly pauses = new PauseBook()
  readonly #refusalsFail: boolean
  #position = 0

  /** `refusalsFail`: true if a hook that refuses everything counts as failing for automatic pauses. */
  constructor({ refusalsFail = false }: { readonly refusalsFail?: boolean } = {}) {
    this.#refusalsFail = refusalsFail
  }

  /** The offset before which all records have been read. */
  get position(): number {
    return this.#position
  }

  /** Adds a record. `seenMs`: the time when the record was written, by the clock of this process. */
  take({ offset, key, value }: NoticeRecord, seenMs: number): void {
    this.#position = offset + 1
    const record = decodeRecord(key, value)
    if (record === undefined) return
    if (record.kind === 'pause') this.pauses.take(record.record, { offset, seenMs })
    else if (record.kind === 'gone') this.pauses.takeGone(record.record, offset)
    else if (record.kind === 'told') this.#takeTold(record.key, record.told)
    else if (record.report === undefined) this.#reports.delete(record.reporter)
    else this.#takeReport(record.reporter, record.report, seenMs)
  }

  #takeTold(key: string, told: Told | undefined): void {
    if (told === undefined) {
      const forgotten = this.#told.get(key)?.notice
      if (forgotten?.kind === 'failing') this.#answered.delete(hookKey(forgotten))
      this.#told.delete(key)
      return
    }
    this.#told.set(key, told)
    const { notice } = told
    if (told.isSent) {
      // This record says that the notice was sent. Compaction may have removed the notice's earlier record.
      // In that case, only this record shows which counts were in the notice, so they are dropped here.
      if (notice.kind === 'paced' || notice.kind === 'dead_letters') this.#dropBefore(notice)
      return
    }
    if (notice.kind === 'failing') this.#answered.delete(hookKey(notice))
    else if (notice.kind === 'paced' || notice.kind === 'dead_letters')
      this.#tallies[notice.kind].delete(notice.destinationId)
  }

  #dropBefore({ kind, destinationId, atMs }: Notice & { readonly kind: CountedKind }): void {
    const tally = this.#tallies[kind].get(destinationId)
    if (tally !== undefined && tally.sinceMs < atMs) this.#tallies[kind].delete(destinationId)
  }

  #takeReport(
    reporter: string,
    { failing, answered, counts, refusing = [], accepted = [] }: Report,
    seenMs: number,
  ): void {
    this.#reports.set(reporter, { failing, refusing, seenMs })
    const refusingKeys = new Set(this.#refusalsFail ? refusing.map(hookKey) : [])
    for (const hook of answered) {
      const key = hookKey(hook)
      this.#answered.set(key, Math.max(hook.atMs, this.#answered.get(key) ?? 0))
      if (!refusingKeys.has(key)) this.pauses.answered(hook.destinationId, seenMs)
    }
    for (const hook of accepted) {
      const key = hookKey(hook)
      this.#accepted.set(key, Math.max(hook.atMs, this.#accepted.get(key) ?? 0))
    }
    for (const counted of counts)
      for (const kind of countedKinds) this.#count(kind, counted.destinationId, counted[kind], seenMs)
  }

  #count(
    kind: CountedKind,
    destinationId: string,
    counts: Readonly<Record<string, number>>,
    seenMs: number,
  ): void {
    if (sumOf(counts) === 0) return
    const before = this.#tallies[kind].get(destinationId)
    // The lower time is used, because the former time lies in the future if the clock was set back.
    const sinceMs = Math.min(before?.sinceMs ?? seenMs, seenMs)
    this.#tallies[kind].set(destinationId, { sinceMs, counts: added(before?.counts ?? {}, counts) })
  }

  told(key: string): Told | undefined {
    return this.#told.get(key)
  }

  /** Returns the last notice of each kind and subject, with its key. */
  allTold(): readonly (readonly [key: string, told: Told])[] {
    return [...this.#told]
  }

  /** Returns the notices that were decided, but that no record reports as sent. */
  unsent(): readonly Notice[] {
    return [...this.#told.values()].flatMap(({ notice, isSent }) => (isSent ? [] : [notice]))
  }

  tallies(kind: CountedKind): ReadonlyMap<string, Tally> {
    return this.#tallies[kind]
  }

  dropTally(kind: CountedKind, destinationId: string): void {
    this.#tallies[kind].delete(destinationId)
  }

  /**
   * Returns the time when a hook last accepted a request. Returns 0 if it has accepted none since its
   * `failing` notice.
   */
  answeredMs(hook: HookName): number {
    return this.#answered.get(hookKey(hook)) ?? 0
  }

  /**
   * Returns the hooks that fail, each hook once. Ignores reports from before `sinceMs`. If several processes
   * report a hook, the result has the earliest time at which the hook began to fail, and the outcome of its
   * last failure.
   */
  failing(sinceMs: number): ReadonlyMap<string, SeenHook> {
    return this.#mergedSince(sinceMs, ({ failing }) => failing)
  }

  /**
   * Returns the hooks that refuse everything, each hook once, like `failing`. `sinceMs` of a hook isn't
   * earlier than its last success at any process.
   */
  refusing(sinceMs: number): ReadonlyMap<string, SeenHook> {
    const refusing = this.#mergedSince(sinceMs, (report) => report.refusing)
    return new Map(
      [...refusing].flatMap(([key, hook]): readonly (readonly [string, SeenHook])[] => {
        const acceptedMs = this.#accepted.get(key) ?? 0
        if (acceptedMs >= hook.lastFailedMs) return []
        return [[key, { ...hook, sinceMs: Math.max(hook.sinceMs, acceptedMs) }]]
      }),
    )
  }

  failingForPauses(sinceMs: number): ReadonlyMap<string, SeenHook> {
    const failing = this.failing(sinceMs)
    return this.#refusalsFail ? new Map([...this.refusing(sinceMs), ...failing]) : failing
  }

  /** Returns the time when a hook that any process has reported as refusing last accepted a request, or 0. */
  acceptedMs(hook: HookName): number {
    return this.#accepted.get(hookKey(hook)) ?? 0
  }

  #mergedSince(
    sinceMs: number,
    of: (report: SeenReport) => readonly FailingHook[],
  ): ReadonlyMap<string, SeenHook> {
    const hooks = new Map<string, SeenHook>()
    for (const report of this.#reports.values()) {
      if (report.seenMs < sinceMs) continue
      for (const hook of of(report)) hooks.set(hookKey(hook), merged(hooks.get(hookKey(hook)), hook))
    }
    return hooks
  }

  /** Returns the processes that have reported nothing since `sinceMs`. */
  silent(sinceMs: number): readonly string[] {
    return [...this.#reports].flatMap(([reporter, { seenMs }]) => (seenMs < sinceMs ? [reporter] : []))
  }
}

export type HookName = { readonly destinationId: string; readonly hookId: string }

export function hookKey({ destinationId, hookId }: HookName): string {
  return JSON.stringify([destinationId, hookId])
}

function merged(one: SeenHook | undefined, other: SeenHook): SeenHook {
  if (one === undefined) return other
  const last = one.lastFailedMs >= other.lastFailedMs ? one : other
  return { ...last, sinceMs: Math.min(one.sinceMs, other.sinceMs) }
}

function added(
  one: Readonly<Record<string, number>>,
  other: Readonly<Record<string, number>>,
): Record<string, number> {
  const sum = { ...one }
  for (const [reason, count] of Object.entries(other)) sum[reason] = (sum[reason] ?? 0) + count
  return sum
}
