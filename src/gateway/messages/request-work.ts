/**
 * The work that any request may cause, in nanoseconds of CPU time. An ordinary request of `freeBytes` costs
 * less.
 */
const freeNs = 1_800_000
/** Up to this number of bytes, a request may cause only the work of `freeNs`. */
const freeBytes = 2_048
/** The work that each further byte of a request may cause, in nanoseconds. */
const perSentByteNs = 8_000
/** The bytes to which any request may be inflated, and how many more for each byte beyond `freeBytes`. */
const freeInflatedBytes = 128 * 1_024
const inflatedPerSentByte = 400

/** Returns the limit on the bytes to which a body of `sentBytes` may be inflated. */
export function mostInflated(sentBytes: number): number {
  return freeInflatedBytes + inflatedPerSentByte * Math.max(0, sentBytes - freeBytes)
}

// Upper bounds of what the steps of a request cost, in nanoseconds. They were measured with the worst bodies
// of test/support/harmful-bodies.ts.
/** A byte that is inflated and searched for the write key. */
const perInflatedByteNs = 2.5
/** A message, until Kafka has acknowledged it, without what its bytes cost. */
const perMessageNs = 6_000
/** A byte of a message that is scanned and copied. */
const perScannedByteNs = 12
/** A byte of a message that is respelled. */
const perRespelledByteNs = 50
/** A byte that is parsed to values. */
const perParsedByteNs = 400
/** A byte that is written into a message for all messages of a batch. */
const perSharedByteNs = 4

/** No step costs more than this for a byte of a body, so not all bodies need to be limited. */
const mostPerByteNs = perParsedByteNs
/** To scan a body of this length costs so little that it is done before the work is taken. */
const shortBytes = 64 * 1_024

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
    const allowedNs = freeNs + perSentByteNs * Math.max(0, sentBytes - freeBytes)
    this.isLimited = bodyBytes * mostPerByteNs > allowedNs
    this.isLookedAt = this.isLimited && bodyBytes > shortBytes
    this.#leftNs = this.isLimited ? allowedNs - bodyBytes * perInflatedByteNs : Infinity
  }

  /** No longer message can be scanned. */
  get mostScanned(): number {
    return Math.max(0, this.#leftNs) / perScannedByteNs
  }

  /** Takes the work for a message of this length. Returns false if it would be too much. */
  scans(bytes: number): boolean {
    return this.#take(perMessageNs + bytes * perScannedByteNs)
  }

  /** Takes the work of respelling this number of bytes. Returns false if it would be too much. */
  respells(bytes: number): boolean {
    return this.#take(bytes * perRespelledByteNs)
  }

  /** No longer text can be parsed. */
  get mostParsed(): number {
    return Math.max(0, this.#leftNs) / perParsedByteNs
  }

  /** Takes the work of parsing this number of bytes. Returns false if it would be too much. */
  parses(bytes: number): boolean {
    return this.#take(bytes * perParsedByteNs)
  }

  /**
   * Takes the work of writing `bytes` into each of `messages` messages. Returns false if it would be too
   * much.
   */
  shares(messages: number, bytes: number): boolean {
    return this.#take(messages * bytes * perSharedByteNs)
  }

  #take(ns: number): boolean {
    this.#leftNs -= ns
    return this.#leftNs >= 0
  }
}
