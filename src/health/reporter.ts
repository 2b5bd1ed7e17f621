import type { DestinationWord, HealthRecord, LimitWord, ProcessWord, WaitingWord } from './health-record.ts'

/** What is true of a destination in this process now. */
export type DestinationFacts = {
  /** The number of messages that wait, in the queue and in the lane. */
  readonly messages: number
  /** See `WaitingWord`. */
  readonly replayed: number
  readonly limit: LimitWord | undefined
}

/** What a process tells. */
export type Facts = {
  /** The destinations with something to tell. */
  readonly destinations: ReadonlyMap<string, DestinationFacts>
  /**
   * Returns since when the oldest message of a destination waits, in epoch milliseconds. `undefined`: not
   * known.
   */
  readonly oldestMs: (destinationId: string) => number | undefined
  readonly process: ProcessWord
}

/** What was told of a destination, and what of it is needed for the next word. */
type Told = {
  word: DestinationWord
  writtenMs: number
  /** How many messages have left since `sinceMs`. */
  left: number
  sinceMs: number
  perSecond: number | undefined
}

/**
 * A word is written again after this time, in milliseconds, even if nothing has changed. So readers find all
 * words by reading back this far.
 */
export const wordLastsMs = 10 * 60_000
/** Fewer messages a second than this count as none. */
const leastPerSecond = 0.01
/** The most destinations of which one report tells. The others follow in the next reports. */
const mostAtOnce = 1_000
/** The weight of the last report in the average of how many messages leave a second. */
const newestWeight = 0.3
/** A limit that changes by less than this part of itself is not told anew. */
const smallChange = 0.25

/**
 * Decides what a process writes to the topic `health`: of each destination with something to tell a word,
 * when it has changed. All times are epoch milliseconds.
 */
export class Reporter {
  readonly #writer: string
  readonly #told = new Map<string, Told>()
  /** What the last report has taken back. It may not have been written. */
  #takenBack: string[] = []
  /** The place in the list of destinations at which the next report begins. */
  #from = 0

  /** `writer` is the name of this process. No other process has the same name. */
  constructor(writer: string) {
    this.#writer = writer
  }

  /** Notes that a delivery has ended. Most destinations aren't followed, and cost nothing. */
  left(destinationId: string): void {
    const told = this.#told.get(destinationId)
    if (told !== undefined) told.left++
  }

  /**
   * Returns the records to write. The word about the process comes last, because it says that all words
   * before it are true.
   */
  report({ destinations, oldestMs, process }: Facts, nowMs: number): readonly HealthRecord[] {
    const writer = this.#writer
    const records: HealthRecord[] = []
    this.#takenBack = []
    for (const destinationId of this.#told.keys()) {
      if (destinations.has(destinationId)) continue
      this.#told.delete(destinationId)
      this.#takenBack.push(destinationId)
      records.push({ kind: 'destination', destinationId, writer, word: undefined })
    }
    const all = [...destinations]
    let looked = 0
    for (let told = 0; looked < all.length && told < mostAtOnce; looked++) {
      const [destinationId, facts] = all[(this.#from + looked) % all.length] ?? nobody
      const word = this.#changed(destinationId, facts, { oldestMs, nowMs })
      if (word === undefined) continue
      told++
      records.push({ kind: 'destination', destinationId, writer, word })
    }
    this.#from = all.length === 0 ? 0 : (this.#from + looked) % all.length
    return [...records, { kind: 'process', writer, word: process }]
  }

  /** Returns the records that take back everything, because the process stops. */
  end(): readonly HealthRecord[] {
    const writer = this.#writer
    const words = [...this.#told.keys()].map((destinationId): HealthRecord => ({
      kind: 'destination',
      destinationId,
      writer,
      word: undefined,
    }))
    this.#told.clear()
    return [{ kind: 'process', writer, word: undefined }, ...words]
  }

  /** Forgets what was told, because it may not have been written. */
  forget(): void {
    for (const told of this.#told.values()) told.word = {}
    for (const destinationId of this.#takenBack)
      this.#told.set(destinationId, {
        word: {},
        writtenMs: -Infinity,
        left: 0,
        sinceMs: 0,
        perSecond: undefined,
      })
  }

  /** Returns the word about a destination if it differs from the last one. */
  #changed(
    destinationId: string,
    { messages, replayed, limit }: DestinationFacts,
    { oldestMs, nowMs }: { readonly oldestMs: Facts['oldestMs']; readonly nowMs: number },
  ): DestinationWord | undefined {
    const told = this.#told.get(destinationId)
    const left = told?.left ?? 0
    const perSecond = rateOf(told, limit?.perRequest ?? 1, nowMs)
    if (told !== undefined) {
      told.perSecond = perSecond
      if (left > 0 || perSecond === undefined) Object.assign(told, { left: 0, sinceMs: nowMs })
    }
    const before = told?.word
    const isSame =
      told !== undefined &&
      nowMs - told.writtenMs < wordLastsMs &&
      left === 0 &&
      isNear(before?.waiting?.perSecond, perSecond) &&
      before?.waiting?.messages === messages &&
      before.waiting.replayed === replayed &&
      // A time that wasn't known may be known now.
      (messages === 0 || before.waiting.oldestMs !== undefined) &&
      isSimilar(before.limit, limit)
    if (isSame) return undefined
    const waiting: WaitingWord = {
      messages,
      replayed,
      ...optional('oldestMs', messages > 0 ? oldestMs(destinationId) : undefined),
      ...optional('perSecond', perSecond),
    }
    const word: DestinationWord = { waiting, ...(limit !== undefined && { limit }) }
    if (told !== undefined) Object.assign(told, { word, writtenMs: nowMs })
    else this.#told.set(destinationId, { word, writtenMs: nowMs, left: 0, sinceMs: nowMs, perSecond })
    return word
  }
}

/**
 * Returns how many messages leave a second, on average over the last reports in which some have left. In
 * between, not more than one request can have left, with `perRequest` messages.
 */
function rateOf(told: Told | undefined, perRequest: number, nowMs: number): number | undefined {
  if (told === undefined || nowMs <= told.sinceMs) return told?.perSecond
  const { left, sinceMs, perSecond } = told
  const seconds = (nowMs - sinceMs) / 1_000
  const newest = left / seconds
  const before = perSecond ?? newest
  const rate = left > 0 ? before + newestWeight * (newest - before) : Math.min(before, perRequest / seconds)
  return rate < leastPerSecond ? undefined : Math.round(rate * 1_000) / 1_000
}

const nobody: readonly [string, DestinationFacts] = ['', { messages: 0, replayed: 0, limit: undefined }]

function isSimilar(before: LimitWord | undefined, now: LimitWord | undefined): boolean {
  if (before === undefined || now === undefined) return before === now
  return (
    before.isLowered === now.isLowered &&
    isNear(before.inFlight, now.inFlight) &&
    isNear(before.perSecond, now.perSecond) &&
    isNear(before.perRequest ?? 1, now.perRequest ?? 1)
  )
}

function isNear(before: number | undefined, now: number | undefined): boolean {
  if (before === undefined || now === undefined) return before === now
  return Math.abs(now - before) <= smallChange * before
}

function optional<Name extends string>(name: Name, value: number | undefined): Partial<Record<Name, number>> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the only key is `name`
  return value === undefined ? {} : ({ [name]: value } as Partial<Record<Name, number>>)
}
