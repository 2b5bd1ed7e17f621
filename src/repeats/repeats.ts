import { Fingerprint } from './fingerprint.ts'

/** The arrival of a record with a message. `timestampMs` is its append time, in milliseconds since 1970. */
export type Arrival = { readonly partition: number; readonly offset: number; readonly timestampMs: number }

export type RepeatsOptions = {
  /** Longest time between the append times of a message and its repeat, rounded up to whole seconds. */
  readonly windowMs: number
  /**
   * Number of messages that are remembered, for all units together. Beyond this number, the oldest messages
   * are forgotten.
   */
  readonly messages: number
}

/**
 * Remembers messages, and recognizes a repeat: a message with the same `messageId`, source and unit as an
 * earlier message (docs/repeats.md, docs/decisions/021).
 *
 * The memory is reserved at once and never grows. An idle process uses none of it, because the system
 * allocates memory only when the memory is first written to. The first messages take all of it, 64 KiB at a
 * time (`#takeMemory`).
 *
 * The memory has two parts. The first part is a ring of entries, one for each message. An entry has the
 * message's fingerprint, and the offset and the append time of its record. Each new entry overwrites the
 * oldest entry. The second part is a hash table. Each chain of the hash table links entries of the ring, from
 * the newest to the oldest. A chain ends at the first entry that was overwritten, so entries never have to be
 * removed from a chain.
 */
export class Repeats {
  readonly #windowS: number
  readonly #capacity: number
  /**
   * The number after the highest number of an entry. An entry is a remembered message. Entries are numbered
   * one after the other. The lowest number is `#capacity`. After the highest number, the lowest number is
   * used again.
   */
  readonly #numbersEnd: number
  readonly #entries: Int32Array
  /** For each chain of the hash table, the number of the newest entry. An entry is a remembered message. */
  readonly #heads: Int32Array
  readonly #fingerprint = new Fingerprint()
  readonly #sources = new Map<string, number>()
  /**
   * The number of the present tenure, by unit. Fingerprints contain this number, and it is dropped when the
   * unit is lost. So no message matches a message that came before the loss of the unit.
   */
  readonly #tenures = new Map<number, number>()
  #tenuresBegun = 0
  #newest: number
  #count = 0
  /** The place after the last word of `#entries` whose memory is already taken from the system. */
  #takenWords = 0

  constructor({ windowMs, messages }: RepeatsOptions) {
    this.#windowS = Math.ceil(windowMs / 1_000)
    this.#capacity = messages
    this.#numbersEnd = messages * laps
    this.#newest = this.#numbersEnd - 1
    this.#entries = new Int32Array(messages * entryWords)
    this.#heads = new Int32Array(2 ** Math.ceil(Math.log2(messages)))
  }

  /**
   * Returns true for a repeat: an earlier record of the same partition had the same source and `messageId`.
   * The earlier record must have been appended within `windowMs`, and read after this worker got the unit. If
   * the message is no repeat, remembers the message. A record that is read again is no repeat of itself.
   */
  isRepeat({ partition, offset, timestampMs }: Arrival, sourceId: string, messageId: string): boolean {
    const isTaken = this.#fingerprint.take(this.tenureOf(partition), this.#numberOf(sourceId), messageId)
    if (!isTaken) return false
    const seconds = secondsOf(timestampMs)
    const at = this.#find()
    if (at === nowhere) {
      this.#remember(offset, seconds)
      return false
    }
    const entries = this.#entries
    const firstOffset = joinOffset(entries[at + offsetLow] ?? 0, entries[at + offsetHigh] ?? 0)
    if (firstOffset < offset) {
      if (Math.abs((seconds - (entries[at + appended] ?? 0)) | 0) < this.#windowS) return true
      this.#remember(offset, seconds)
    } else if (firstOffset > offset) {
      // The group's offsets were set back, so this earlier record is read again. It is delivered again, and
      // remembered in place of the later record. When the later record is read again, it counts as a repeat
      // of this one.
      this.#write(at, offset, seconds)
    }
    return false
  }

  /**
   * Remembers a message that a former owner of the unit has passed on and settled, unless a message with the
   * same id is remembered already. Returns `lost` if the tenure is over. Then others may have owned the unit
   * meanwhile, so nothing more may be remembered in this way.
   */
  recall(
    tenure: number,
    { partition, offset, timestampMs }: Arrival,
    sourceId: string,
    messageId: string,
  ): 'remembered' | 'known' | 'lost' {
    if (this.#tenures.get(partition) !== tenure) return 'lost'
    if (!this.#fingerprint.take(tenure, this.#numberOf(sourceId), messageId)) return 'known'
    if (this.#find() !== nowhere) return 'known'
    this.#remember(offset, secondsOf(timestampMs))
    return 'remembered'
  }

  /** Forgets the messages of all units that aren't in `units`, because this worker has lost these units. */
  keepOnly(units: readonly number[]): void {
    for (const unit of this.#tenures.keys()) {
      if (!units.includes(unit)) this.#tenures.delete(unit)
    }
  }

  /**
   * Number of messages that are remembered. It includes messages that are older than `windowMs` and messages
   * of lost units, until other messages take their place.
   */
  get count(): number {
    return this.#count
  }

  /** Memory in bytes: 36 to 40 for each message that can be remembered. */
  get bytes(): number {
    return this.#entries.byteLength + this.#heads.byteLength
  }

  /**
   * Returns how far back repeats are recognized, in milliseconds. This is `windowMs`, unless the memory is
   * full and its oldest message is younger than `windowMs`. In that case, this is the age of the oldest
   * message.
   */
  reachMs(nowMs: number): number {
    if (this.#count < this.#capacity) return this.#windowS * 1_000
    const oldest = this.#placeOf(this.#newest - this.#count + 1)
    const seconds = (this.#entries[oldest + appended] ?? 0) >>> 0
    return Math.min(this.#windowS * 1_000, Math.max(0, nowMs - seconds * 1_000))
  }

  /** Returns the number of the unit's present tenure. Begins one if there is none. */
  tenureOf(partition: number): number {
    const known = this.#tenures.get(partition)
    if (known !== undefined) return known
    const tenure = ++this.#tenuresBegun
    this.#tenures.set(partition, tenure)
    return tenure
  }

  #numberOf(sourceId: string): number {
    const known = this.#sources.get(sourceId)
    if (known !== undefined) return known
    const number = this.#sources.size
    this.#sources.set(sourceId, number)
    return number
  }

  /**
   * Returns the place in `#entries` of the newest message with the fingerprint in `#fingerprint`. Returns
   * `nowhere` if there is no such message.
   */
  #find(): number {
    const entries = this.#entries
    const { words } = this.#fingerprint
    const a = words[0] ?? 0
    const b = words[1] ?? 0
    const c = words[2] ?? 0
    const d = words[3] ?? 0
    let number = this.#heads[a & (this.#heads.length - 1)] ?? 0
    let lastAge = -1
    for (;;) {
      const age = this.#ageOf(number)
      // Entries get older along a chain. An entry that was overwritten, or that isn't older than the one
      // before it, no longer belongs to the chain.
      if (age >= this.#capacity || age <= lastAge) return nowhere
      const at = this.#placeOf(number)
      const isSame =
        entries[at] === a && entries[at + 1] === b && entries[at + 2] === c && entries[at + 3] === d
      if (isSame) return at
      lastAge = age
      number = entries[at + nextOlder] ?? 0
    }
  }

  #remember(offset: number, seconds: number): void {
    this.#newest = this.#newest + 1 < this.#numbersEnd ? this.#newest + 1 : this.#capacity
    if (this.#count < this.#capacity) this.#count++
    const at = this.#placeOf(this.#newest)
    if (this.#takenWords < this.#entries.length) this.#takeMemory()
    const { words } = this.#fingerprint
    for (let i = 0; i < words.length; i++) this.#entries[at + i] = words[i] ?? 0
    const chain = (words[0] ?? 0) & (this.#heads.length - 1)
    this.#entries[at + nextOlder] = this.#heads[chain] ?? 0
    this.#heads[chain] = this.#newest
    this.#write(at, offset, seconds)
  }

  /**
   * Writes to the next part of `#entries` and `#heads`, so that the system allocates the memory of this part
   * now. No message is stored in this part yet. Without this method, a process would grow until its first
   * busy day is over, as if it leaked memory. All parts aren't taken at once, because this would stop a
   * process with a large memory for a second.
   */
  #takeMemory(): void {
    const entries = this.#entries
    const heads = this.#heads
    const end = this.#takenWords + wordsPerTake
    const headsPerWord = heads.length / entries.length
    const headsEnd = Math.min(heads.length, end * headsPerWord)
    for (let at = Math.floor(this.#takenWords * headsPerWord); at < headsEnd; at += wordsPerPage)
      heads[at] = heads[at] ?? 0
    entries.fill(0, this.#takenWords, end)
    this.#takenWords = end
  }

  #write(at: number, offset: number, seconds: number): void {
    this.#entries[at + offsetLow] = offset | 0
    this.#entries[at + offsetHigh] = Math.floor(offset / 2 ** 32)
    this.#entries[at + appended] = seconds
  }

  /**
   * Returns how many messages were remembered after the entry with this number. No entry has the number 0.
   * For the number 0, the result is larger than for all entries.
   */
  #ageOf(number: number): number {
    const age = this.#newest - number
    return age < 0 ? age + this.#numbersEnd - this.#capacity : age
  }

  #placeOf(number: number): number {
    return (number % this.#capacity) * entryWords
  }
}

/**
 * The index, within an entry, of the word with the lower 32 bits of the record's offset. An entry stands for
 * one remembered message. The first four words of an entry are the fingerprint.
 */
const offsetLow = 4
const offsetHigh = 5
/**
 * The index, within an entry, of the word with the record's append time, in seconds since 1970. An entry
 * stands for one remembered message.
 */
const appended = 6
const nextOlder = 7
const entryWords = 8
/**
 * The number of words whose memory is taken at once. These are 64 KiB, many times the size of one remembered
 * message. So no message is ever written to memory that isn't taken yet.
 */
const wordsPerTake = 16 * 1_024
/** The number of words in the smallest memory page that systems use, which has 4 KiB. */
const wordsPerPage = 1_024

const nowhere = -1
/**
 * How often the whole memory is overwritten before the numbers of the entries start again. By then, every
 * chain of the hash table has a newer entry, so no chain begins with a number from before.
 */
const laps = 32

function secondsOf(timestampMs: number): number {
  return Math.floor(timestampMs / 1_000) | 0
}

function joinOffset(low: number, high: number): number {
  return high * 2 ** 32 + (low >>> 0)
}
