import { skipSpace, skipSpaceWithin, type Weight } from '../../message/json/json-skip.ts'

/** The work that any request may cause, in nanoseconds of CPU time. */
const freeNs = 1_400_000
/**
 * The work that each of the first bytes of a request may cause beyond that, in nanoseconds. 50 messages that
 * differ only in their ids and times are 30 to 100 KB, of which gzip makes 1 to 2 KB.
 */
const perFirstByteNs = 220
const firstBytes = 2_048
/** The work that each further byte of a request may cause, in nanoseconds. */
const perSentByteNs = 8_000
// Upper bounds of what the steps of a request cost, in nanoseconds. They were measured with the worst bodies
// of test/support/harmful-bodies.ts.
/** A byte that is inflated and searched for the write key. Half of this is for the garbage collector. */
const perInflatedByteNs = 2.2
/** This part of the work that a request may cause may be needed to inflate its body. */
const inflatingPart = 1 / 2
/** A message, until Kafka has acknowledged it, without what its bytes cost. */
const perMessageNs = 6_000
/** A byte of a message that is scanned and copied. */
const perScannedByteNs = 12
/** A byte that is searched for the write key, member by member. */
const perSearchedByteNs = 32
/** A byte of a message that is respelled. */
const perRespelledByteNs = 50
/** A byte of a message that is tidied, without its escapes and numbers. */
const perTidiedByteNs = 15
/** An escape, or a number, that may have to be spelled differently. */
const perEscapeNs = 40
const perNumberNs = 560
/** A message that is completed from its outline, beyond what `perMessageNs` says. */
const perOutlineNs = 6_000
/** A byte of a batch outside of its list of messages. */
const perRestByteNs = 150
/**
 * A byte of a long text, from its scan until Kafka has acknowledged it. More than half of this is for the
 * garbage collector. Honest clients send the same long text in many messages of a batch, which gzip makes 300
 * times shorter.
 */
const perLongByteNs = 6
/** A byte of a long text that is respelled, without its escapes. */
const perLongRespelledByteNs = 1.6
/** A byte of a long text that is only skipped. */
const perLongSkippedByteNs = 0.2
/** A byte of a long text with many escapes, beyond that, each time that it is read. */
const perSlowByteNs = 2
/** A byte of a long text outside of the list of messages. */
const perLongRestByteNs = 8
/** A byte of white space around messages. */
const perSpaceByteNs = 5
/** A byte that is written into a message for all messages of a batch. */
const perSharedByteNs = 4

/** No byte of a body costs more than this in all steps, so not all bodies need to be limited. */
const mostPerByteNs = 400
/** To scan a body of this length costs so little that it is done before the work is taken. */
const shortBytes = 64 * 1_024

function allowedFor(sentBytes: number): number {
  const further = Math.max(0, sentBytes - firstBytes)
  return freeNs + perFirstByteNs * (sentBytes - further) + perSentByteNs * further
}

/** Returns the limit on the inflated length of a body. `sentBytes`: its length as the client sent it. */
export function mostInflated(sentBytes: number): number {
  return Math.floor((allowedFor(sentBytes) * inflatingPart) / perInflatedByteNs)
}

/**
 * The work that a request may cause. It is limited by the bytes that the client has sent, and not by what
 * these bytes become when they are inflated: 1 KB of gzip can hold 500 KB. A body that isn't compressed never
 * reaches the limit. An honest batch doesn't reach it either, because each message has an id of its own,
 * which gzip can't shorten.
 */
export class RequestWork {
  #leftNs: number
  /** False if the body can't cause too much work. */
  readonly isLimited: boolean
  /** True if the length of a message has to be known before the message is scanned. */
  readonly isLookedAt: boolean

  /** `sentBytes`: the length of the body as the client sent it. `bodyBytes`: its inflated length. */
  constructor(sentBytes: number, bodyBytes: number) {
    const allowedNs = allowedFor(sentBytes)
    this.isLimited = bodyBytes * mostPerByteNs > allowedNs
    this.isLookedAt = this.isLimited && bodyBytes > shortBytes
    this.#leftNs = this.isLimited ? allowedNs - bodyBytes * perInflatedByteNs : Infinity
  }

  /** True if a step was refused. */
  get isUsedUp(): boolean {
    return this.#leftNs < 0
  }

  /** How many bytes outside of long texts may be searched for the write key, member by member. */
  get mostSearched(): number {
    return this.#leftNs / perSearchedByteNs
  }

  /** Takes the work of a search that left so many of the bytes of `mostSearched`. */
  searched(leftBytes: number): void {
    this.#leftNs = leftBytes * perSearchedByteNs
  }

  /** No more bytes outside of long texts can be scanned. */
  get mostScanned(): number {
    return Math.max(0, this.#leftNs) / perScannedByteNs
  }

  /** No more bytes outside of long texts and of the list of messages can be read. */
  get mostRest(): number {
    return Math.max(0, this.#leftNs) / perRestByteNs
  }

  /** A value with more bytes outside of long texts can't be respelled, so nobody has to weigh it further. */
  get mostRespelled(): number {
    return this.isLimited ? Math.max(0, this.#leftNs) / perRespelledByteNs + 1 : Infinity
  }

  /** Takes the work of scanning and writing a message. Returns false if it would be too much. */
  scans(message: Weight): boolean {
    return this.#take(perMessageNs) && this.#takeFor(message, perScannedByteNs, perLongByteNs)
  }

  /**
   * Takes the work of a message that is weighed, and then left out. Returns false if it would be too much.
   */
  skips(message: Weight): boolean {
    return this.#take(perMessageNs) && this.#takeFor(message, perScannedByteNs, perLongSkippedByteNs)
  }

  /** Takes the work of respelling a message or a body. Returns false if it would be too much. */
  respells(value: Weight): boolean {
    return this.#takeFor(value, perRespelledByteNs, perLongRespelledByteNs)
  }

  /** Gives back a part of what `respells` took for a message, because tidying was enough. */
  tidied(
    message: Weight,
    { escapes, numbers }: { readonly escapes: number; readonly numbers: number },
  ): void {
    const tidiedBytes = message.bytes - message.long
    const tookNs = tidiedBytes * perTidiedByteNs + escapes * perEscapeNs + numbers * perNumberNs
    this.#leftNs += Math.max(0, tidiedBytes * perRespelledByteNs - tookNs)
  }

  /** Takes the work of tidying a message that has to be respelled nevertheless. */
  tidiesInVain(message: Weight): boolean {
    return this.#take(message.bytes * perTidiedByteNs)
  }

  /** Takes the work of the escapes of a message. Long texts may have more than was expected. */
  unescapes(escapes: number): boolean {
    return this.#take(escapes * perEscapeNs)
  }

  /** Returns false if it is too much work to complete so many messages from their outlines. */
  outlines(messages: number): boolean {
    return this.#leftNs >= messages * perOutlineNs
  }

  /**
   * Takes the work of reading a batch without its list of messages. Returns false if it would be too much.
   */
  reads(rest: Omit<Weight, 'slow'>): boolean {
    return this.#takeFor({ ...rest, slow: 0 }, perRestByteNs, perLongRestByteNs)
  }

  /**
   * Skips white space, and takes the work of that. Returns the place of the next byte from `start` on. If it
   * would be too much, returns the end of the bytes, and the next step can't be taken.
   */
  skipSpace(bytes: Buffer, start: number): number {
    if (!this.isLimited) return skipSpace(bytes, start)
    const end = skipSpaceWithin(bytes, start, start + this.#leftNs / perSpaceByteNs)
    return this.#take((end - start) * perSpaceByteNs) ? end : bytes.length
  }

  /**
   * Takes the work of writing `bytes` into each of `messages` messages. Returns false if it would be too
   * much.
   */
  shares(messages: number, bytes: number): boolean {
    return this.#take(messages * bytes * perSharedByteNs)
  }

  #takeFor({ bytes, long, slow }: Weight, perByteNs: number, perLongNs: number): boolean {
    return this.#take((bytes - long) * perByteNs + long * perLongNs + slow * perSlowByteNs)
  }

  #take(ns: number): boolean {
    this.#leftNs -= ns
    return this.#leftNs >= 0
  }
}
