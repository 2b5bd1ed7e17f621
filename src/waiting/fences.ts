import type { SourcedMessage } from './queued-message.ts'
import { hasNoneBetween, isEarlier, type Tenure } from './tenure.ts'

/** The fences that an earlier owner has told. */
export type ToldFences = { readonly by: Tenure; readonly fences: ReadonlyMap<string, number> }

/**
 * Tells which records of `waiting` an earlier owner has appended too late, for example because it was
 * suspended and the group gave its unit to this owner.
 *
 * This owner has committed before it begins a topic of the unit. From then on, no earlier owner can commit
 * that it has queued a message of this topic. So this owner, or a later one, has such a message too, and what
 * earlier owners append from then on is void. The _fence_ of a topic is an offset of `waiting`: all records
 * from it on were appended after the topic had begun.
 *
 * All of this stays true when this owner is suspended itself, and judges when a later owner has its unit. So
 * an owner tells its fences in its marks, and later owners judge by them too: an append may come after its
 * last look at the log.
 */
export class Fences {
  readonly #unit: number
  readonly #tenure: Tenure
  /** The topics that wait for the commit of `waiting`. */
  readonly #noted = new Set<string>()
  /** The fences by topic. Infinity while a fence isn't known. */
  readonly #fences = new Map<string, number>()
  /** By topic, the offset after the last record of an earlier owner that this owner didn't find void. */
  readonly #counted = new Map<string, number>()
  #told: readonly ToldFences[] = []

  constructor(unit: number, tenure: Tenure) {
    this.#unit = unit
    this.#tenure = tenure
  }

  /** Notes that this owner has begun a topic. */
  note(topic: string): void {
    if (!this.#fences.has(topic)) this.#noted.add(topic)
  }

  /**
   * Call this once `waiting` is committed. Until then, the next owner has the same epoch, and believes what
   * this owner would find void. Returns true if topics were noted since the last call. Then a look at the log
   * is due, which learns their fences.
   */
  begin(): boolean {
    const isNew = this.#noted.size > 0
    for (const topic of this.#noted) this.#fences.set(topic, Infinity)
    this.#noted.clear()
    return isNew
  }

  /**
   * Call this before a record is appended, or the end of the log is asked for. Call the returned function
   * with the offset after the record, or with the end of the log. `isCommitted` is true once `waiting` is.
   */
  ahead(isCommitted: boolean): (offset: number) => void {
    if (isCommitted) this.begin()
    // Each append asks this, and most find all fences known.
    if (!this.#isAnyUnknown()) return nothing
    const unknown = [...this.#fences].flatMap(([topic, at]) => (at === Infinity ? [topic] : []))
    return (offset) => {
      for (const topic of unknown)
        this.#fences.set(topic, Math.min(offset, this.#fences.get(topic) ?? Infinity))
    }
  }

  #isAnyUnknown(): boolean {
    for (const at of this.#fences.values()) if (at === Infinity) return true
    return false
  }

  /** Notes the fences that earlier owners have told. */
  learn(told: readonly ToldFences[]): void {
    this.#told = told
  }

  /**
   * Returns the fences that later owners may judge by. They lie behind the records that this owner read
   * before it knew its fences.
   */
  get told(): ReadonlyMap<string, number> {
    const known = [...this.#fences].filter(([, at]) => at < Infinity)
    return new Map(known.map(([topic, at]) => [topic, Math.max(at, this.#counted.get(topic) ?? 0)]))
  }

  /** Returns true if the owner of an earlier tenure, `by`, has appended this record too late. */
  isVoid(offset: number, { source }: Pick<SourcedMessage, 'source'>, by: Tenure | undefined): boolean {
    const { topic, partition } = source
    // Before a growth of the topics, it was a message of another unit.
    if (partition !== this.#unit || !isEarlier(by, this.#tenure)) return false
    const isBehind = (fences: ReadonlyMap<string, number>): boolean =>
      offset >= (fences.get(topic) ?? Infinity)
    if (isBehind(this.#fences)) return true
    if (this.#told.some((told) => isEarlier(by, told.by) && isBehind(told.fences))) return true
    this.#counted.set(topic, Math.max(offset + 1, this.#counted.get(topic) ?? 0))
    return false
  }

  /**
   * Returns true if no owner can call a record void later that `by` has appended and this owner has found. If
   * there was an owner between the two, it may be suspended, and have begun the record's topic before the
   * append.
   */
  isCertain(by: Tenure | undefined): boolean {
    return by === undefined || hasNoneBetween(by, this.#tenure)
  }
}

const nothing = (): void => undefined
