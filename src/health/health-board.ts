import {
  type AudienceWord,
  decodeHealth,
  type DestinationWord,
  type FailingHookWord,
  type FailingWord,
  type LimitWord,
  type ProcessWord,
} from './health-record.ts'
import { type AudienceHealth, audiencesTogether } from './audience-board.ts'
import type { KeyedRecord } from '../message/records.ts'

/** A process that has written nothing for this time, in milliseconds, is dead, and its words don't count. */
const deadAfterMs = 20_000

/** What is known of a destination in all living processes together. */
export type DestinationHealth = {
  /** The number of messages that wait for their turn. `undefined`: not known, because no process tells. */
  readonly messages: number | undefined
  /** The number of messages of replays and first syncs that aren't done. `undefined`: not known. */
  readonly replayed: number | undefined
  /**
   * The number of messages that wait for their next try, at least and at most. `undefined`: not known. They
   * are the same once all owners have counted everything.
   */
  readonly retrying: number | undefined
  readonly retryingAtMost: number | undefined
  /** Since when the oldest message waits, in epoch milliseconds. `undefined`: not known, or none waits. */
  readonly oldestMs: number | undefined
  /** The time until what waits now has been sent, in milliseconds. `undefined`: not known. */
  readonly drainMs: number | undefined
  /** The most requests in flight, and a second. `undefined`: not known, or not limited. */
  readonly inFlight: number | undefined
  readonly perSecond: number | undefined
  /** True if the endpoint was learned to take less than it could get. */
  readonly isLowered: boolean
}

/** A hook that fails, as all living processes together see it. See `FailingHookWord`. */
export type FailingHook = Omit<FailingHookWord, 'answers'> & {
  /** The outcomes of its last requests, and how many of each, the most frequent first. */
  readonly answers: readonly (readonly [what: string, count: number])[]
}

/** What is known of a destination with hooks that fail. */
export type FailingHealth = {
  /** The hooks, by their ids. */
  readonly hooks: ReadonlyMap<string, FailingHook>
  /** When a message that has failed is tried next, in epoch milliseconds. `undefined`: not known. */
  readonly nextMs: number | undefined
}

/** A living process, and what it tells of itself. */
export type ProcessHealth = ProcessWord & {
  readonly writer: string
  /** When it last told something, in epoch milliseconds. */
  readonly seenMs: number
}

/** What is true of all destinations at a time. */
type Whole = {
  readonly nowMs: number
  readonly changes: number
  /** True if each unit has an owner that lives. */
  readonly isComplete: boolean
  /**
   * The number of messages on the retry topics that no owner has counted, at most. `undefined`: not known.
   */
  readonly uncounted: number | undefined
}

type LivingProcess = { readonly word: ProcessWord; readonly seenMs: number; readonly offset: number }

/**
 * The content of the records of the topic `health` that were read so far. Times are epoch milliseconds by the
 * clock of this process.
 */
export class HealthBoard {
  readonly #processes = new Map<string, LivingProcess>()
  readonly #words = new Map<string, Map<string, DestinationWord>>()
  readonly #failing = new Map<string, Map<string, FailingWord>>()
  readonly #audiences = new Map<string, AudienceWord>()
  #position = 0
  #changes = 0
  /** What `#wholeOf` has found out, for the same time and the same content. */
  #whole: Whole | undefined

  /** The offset before which all records have been read. */
  get position(): number {
    return this.#position
  }

  /** A number that differs after each change of the content. */
  get changes(): number {
    return this.#changes
  }

  /** Adds a record. `seenMs`: the time when it was written. */
  take({ offset, key, value }: Pick<KeyedRecord, 'offset' | 'key' | 'value'>, seenMs: number): void {
    this.#position = offset + 1
    this.#changes++
    const record = decodeHealth(key, value)
    if (record === undefined) return
    const { writer } = record
    if (record.kind === 'destination') takeWord(this.#words, record, record.word)
    else if (record.kind === 'failing') takeWord(this.#failing, record, record.word)
    else if (record.kind === 'audiences') {
      if (record.word === undefined) this.#audiences.delete(writer)
      else this.#audiences.set(writer, record.word)
    } else if (record.word === undefined) this.#processes.delete(writer)
    else this.#processes.set(writer, { word: record.word, seenMs, offset })
  }

  /** Forgets the processes that are dead, and their words. */
  forgetDead(nowMs: number): void {
    this.#changes++
    for (const [writer, { seenMs }] of this.#processes)
      if (nowMs - seenMs > deadAfterMs) this.#processes.delete(writer)
    for (const writer of this.#audiences.keys())
      if (!this.#processes.has(writer)) this.#audiences.delete(writer)
    for (const told of [this.#words, this.#failing])
      for (const [destinationId, words] of told) {
        for (const writer of words.keys()) if (!this.#processes.has(writer)) words.delete(writer)
        if (words.size === 0) told.delete(destinationId)
      }
  }

  /**
   * Returns the time since which everything here is known to be true. `undefined`: the owner of some unit
   * doesn't tell anything, so nothing is known for certain.
   */
  asOfMs(nowMs: number): number | undefined {
    return this.#isComplete(nowMs) ? Math.min(...this.#living(nowMs).map(({ seenMs }) => seenMs)) : undefined
  }

  /** Returns true if the owners of all units have told something at the offset `offset` or later. */
  isCompleteSince(offset: number, nowMs: number): boolean {
    const isLate = this.#living(nowMs).every((living) => living.offset >= offset)
    return isLate && this.#isComplete(nowMs)
  }

  of(destinationId: string, nowMs: number): DestinationHealth {
    const words = this.#words.get(destinationId)
    const failing = this.#failing.get(destinationId)
    const writers = new Set([...(words?.keys() ?? []), ...(failing?.keys() ?? [])])
    const living = [...writers].filter((writer) => this.#lives(writer, nowMs))
    // Of a hook that fails, the limits are told even if nothing waits.
    const told = living.map((writer) => ({ limit: failing?.get(writer)?.limit, ...words?.get(writer) }))
    return sumOf(told, this.#wholeOf(nowMs))
  }

  /** Returns the destinations of which some process knows something. */
  destinations(): Iterable<string> {
    return this.#words.keys()
  }

  /** Returns what is known of a destination whose hooks fail. `undefined`: nobody says that it fails. */
  failingOf(destinationId: string, nowMs: number): FailingHealth | undefined {
    const words = [...(this.#failing.get(destinationId) ?? [])].flatMap(([writer, word]) =>
      this.#lives(writer, nowMs) ? [word] : [],
    )
    return words.length === 0 ? undefined : together(words, nowMs)
  }

  /** Returns the destinations of which some process says that they fail. */
  failing(): Iterable<string> {
    return this.#failing.keys()
  }

  /** Returns what the processes that live know of audiences. */
  audiences(nowMs: number): AudienceHealth {
    const living = [...this.#audiences].filter(([writer]) => this.#lives(writer, nowMs))
    return audiencesTogether(living.map(([, word]) => word))
  }

  /** Returns the processes that live, in the order of their names. */
  processes(nowMs: number): readonly ProcessHealth[] {
    return [...this.#processes]
      .flatMap(([writer, { word, seenMs }]) =>
        this.#lives(writer, nowMs) ? [{ ...word, writer, seenMs }] : [],
      )
      .toSorted((one, other) => (one.writer < other.writer ? -1 : 1))
  }

  #lives(writer: string, nowMs: number): boolean {
    const living = this.#processes.get(writer)
    return living !== undefined && nowMs - living.seenMs <= deadAfterMs
  }

  #living(nowMs: number): readonly LivingProcess[] {
    return [...this.#processes.values()].filter(({ seenMs }) => nowMs - seenMs <= deadAfterMs)
  }

  /** It is the same for all destinations, of which there may be many. */
  #wholeOf(nowMs: number): Whole {
    const changes = this.#changes
    if (this.#whole?.nowMs !== nowMs || this.#whole.changes !== changes) {
      const isComplete = this.#isComplete(nowMs)
      this.#whole = { nowMs, changes, isComplete, uncounted: this.#uncounted(nowMs) }
    }
    return this.#whole
  }

  /** The number of messages on the retry topics that no owner has counted, at most. */
  #uncounted(nowMs: number): number | undefined {
    let total = 0
    for (const { word, seenMs } of this.#processes.values()) {
      if (nowMs - seenMs > deadAfterMs) continue
      const { uncountedRetries = word.retrying ?? null } = word
      if (uncountedRetries === null) return undefined
      total += uncountedRetries
    }
    return total
  }

  /** True if each unit has an owner that lives. */
  #isComplete(nowMs: number): boolean {
    const living = this.#living(nowMs)
    const units = new Set(living.flatMap(({ word }) => word.units))
    return living.length > 0 && living.every(({ word }) => units.size >= word.of)
  }
}

function takeWord<Word>(
  told: Map<string, Map<string, Word>>,
  { destinationId, writer }: { readonly destinationId: string; readonly writer: string },
  word: Word | undefined,
): void {
  let words = told.get(destinationId)
  if (word === undefined) {
    words?.delete(writer)
    if (words?.size === 0) told.delete(destinationId)
    return
  }
  if (words === undefined) told.set(destinationId, (words = new Map<string, Word>()))
  words.set(writer, word)
}

function together(words: readonly FailingWord[], nowMs: number): FailingHealth {
  const byHook = Map.groupBy(
    words.flatMap(({ hooks }) => hooks),
    ({ hook }) => hook,
  )
  const hooks = new Map([...byHook].map(([id, told]) => [id, hookOf(id, told)]))
  const next = words.flatMap(({ nextMs }) => (nextMs === undefined || nextMs < nowMs ? [] : [nextMs]))
  return { hooks, nextMs: leastOf(next) }
}

function hookOf(hook: string, told: readonly FailingHookWord[]): FailingHook {
  const answers = new Map<string, number>()
  for (const [what, count] of told.flatMap((one) => Object.entries(one.answers)))
    answers.set(what, (answers.get(what) ?? 0) + count)
  const succeededMs = Math.max(...told.map((one) => one.succeededMs ?? 0))
  const loginProblem = told.find((one) => one.loginProblem !== undefined)?.loginProblem
  return {
    hook,
    sinceMs: Math.min(...told.map(({ sinceMs }) => sinceMs)),
    isOpen: told.some(({ isOpen }) => isOpen),
    answers: [...answers].toSorted(([, one], [, other]) => other - one),
    failedMs: Math.max(...told.map(({ failedMs }) => failedMs)),
    ...(succeededMs > 0 && { succeededMs }),
    ...(loginProblem !== undefined && { loginProblem }),
  }
}

function sumOf(words: readonly DestinationWord[], { isComplete, uncounted }: Whole): DestinationHealth {
  const waiting = words.flatMap((word) => (word.waiting === undefined ? [] : [word.waiting]))
  const limits = words.flatMap(({ limit }) => (limit === undefined ? [] : [limit]))
  const messages = sum(waiting.map((one) => one.messages))
  const oldest = waiting.flatMap((one) => (one.messages > 0 ? [one.oldestMs] : []))
  const perSecond = sum(waiting.map((one) => one.perSecond ?? 0))
  const most = sumIfAll(limits.map((limit) => limit.perSecond))
  const mostMessages = sumIfAll(limits.map(messagesPerSecond))
  const retrying = sum(waiting.map((one) => one.retrying ?? 0))
  return {
    messages: isComplete ? messages : undefined,
    replayed: isComplete ? sum(waiting.map(({ replayed }) => replayed)) : undefined,
    retrying: isComplete || retrying > 0 ? retrying : undefined,
    retryingAtMost: isComplete && uncounted !== undefined ? retrying + uncounted : undefined,
    oldestMs: isComplete ? leastOf(oldest) : undefined,
    drainMs: isComplete ? drainMsOf(messages, perSecond || (mostMessages ?? 0)) : undefined,
    inFlight: limits.length === 0 ? undefined : sum(limits.map(({ inFlight }) => inFlight)),
    perSecond: most,
    isLowered: limits.some(({ isLowered }) => isLowered),
  }
}

/** Returns how many messages a second a process may send. `undefined`: their number isn't limited. */
function messagesPerSecond({ perSecond, perRequest = 1 }: LimitWord): number | undefined {
  return perSecond === undefined ? undefined : perSecond * perRequest
}

function drainMsOf(messages: number, perSecond: number): number | undefined {
  if (messages === 0) return 0
  return perSecond > 0 ? (messages / perSecond) * 1_000 : undefined
}

/** Returns the lowest number; `undefined` if there is none, or if one isn't known. */
function leastOf(numbers: readonly (number | undefined)[]): number | undefined {
  let least: number | undefined
  for (const one of numbers) {
    if (one === undefined) return undefined
    least = Math.min(least ?? one, one)
  }
  return least
}

/** Returns the sum; `undefined` if there is no number, or if one isn't known. */
function sumIfAll(numbers: readonly (number | undefined)[]): number | undefined {
  const known = numbers.flatMap((one) => (one === undefined ? [] : [one]))
  return known.length === 0 || known.length < numbers.length ? undefined : sum(known)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}
