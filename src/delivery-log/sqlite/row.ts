import { userHashBytes } from '../log-record.ts'

// The layout of a record in its file. The row id contains three values: the time within the hour, a sequence
// number, and the bucket to which the attempt's duration belongs. So every index is sorted by time, and
// counts and percentiles can be read from an index alone.

/** The time span of one file, in milliseconds. */
export const slotMs = 3_600_000

const perMs = 2 ** 24
const buckets = 128
/**
 * The number of different sequence numbers within a millisecond. After the last one, the sequence starts
 * again.
 */
const sequences = perMs / buckets
const stepsPerOctave = 6
const lastBucket = buckets - 1

/** Returns the number of the slot to which a time belongs. Each slot is the file of one hour. */
export function slotOf(atMs: number): number {
  return Math.floor(atMs / slotMs)
}

export function idOf(atMs: number, bucket: number, sequence: number): number {
  return (atMs % slotMs) * perMs + (sequence % sequences) * buckets + bucket
}

/**
 * Returns the step from `id`, which is already used, to the next id to try. The caller adds the step again
 * and again, until an id is free. An id repeats only if the sequence has started again. Many other ids of the
 * same millisecond may then be used too, so the step is a whole millisecond. In the second half of an hour,
 * the step is negative, so that the id stays within the hour's file.
 */
export function stepOf(id: number): number {
  return id < (slotMs / 2) * perMs ? perMs : -perMs
}

/**
 * Returns the lowest id that a row of this time may have in a slot. (A slot is one hour.) For a time before
 * the slot, returns 0. For a time after the slot, returns a number that is higher than all ids.
 */
export function firstIdAt(slot: number, atMs: number): number {
  return Math.min(Math.max(0, Math.ceil(atMs - slot * slotMs)), slotMs) * perMs
}

export function atMsOf(slot: number, id: number): number {
  return slot * slotMs + Math.floor(id / perMs)
}

/**
 * Returns the SQL expression for the number of the step within a slot, which is one hour. `column` has ids.
 * `minutes`: the length of a step.
 */
export function stepSql(column: string, minutes: number): string {
  return `${column} / ${60_000 * perMs * minutes}`
}

/** Returns the SQL expression for the bucket of the duration. `column` has ids. */
export function bucketSql(column: string): string {
  return `${column} % ${buckets}`
}

export function bucketIn(id: number): number {
  return id % buckets
}

/** Returns the bucket of an attempt's duration (1 or more). Records of other kinds have the bucket 0. */
export function bucketOf(durationMicros: number): number {
  const steps = Math.floor(Math.log2(Math.max(1, durationMicros / 62.5)) * stepsPerOctave)
  return Math.min(lastBucket, 1 + steps)
}

/** Returns the middle of a bucket, in milliseconds. */
export function msOfBucket(bucket: number): number {
  return 2 ** ((bucket - 0.5) / stepsPerOctave) / 16
}

/**
 * Hashes a text to 47 bits (cyrb53 with fewer bits). Two texts can have the same hash, so the texts
 * themselves must be compared too.
 */
export function hashOf(text: string): number {
  let high = 0xdeadbeef
  let low = 0x41c6ce57
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    high = Math.imul(high ^ code, 2_654_435_761)
    low = Math.imul(low ^ code, 1_597_334_677)
  }
  high = Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(low ^ (low >>> 13), 3_266_489_909)
  low = Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909)
  return (low & 0x7fff) * 2 ** 32 + (high >>> 0)
}

/** Returns the hash of a user or value as a number of 47 bits. The highest bit of the hash is left out. */
export function hashNumber(bytes: Buffer, at: number): number {
  return bytes.readUIntBE(at, userHashBytes) % 2 ** 47
}

/** Returns the number that `hashNumber` returns for a hash of 12 hex digits. */
export function numberOfHex(hash: string): number {
  return Number.parseInt(hash, 16) % 2 ** 47
}

/** The fields of a row that are neither in its id nor in its shape (a row of the table `shapes`). */
export type RowDetail = {
  attempt: number
  unit: number
  originPartition: number
  originOffset: number
  durationMicros: number
  waitMs: number
  ageMs: number
  weight: number
  messageId: string
  user: string
  answer: string
}

const hasUser = 1
const isUuid = 2
const isElsewhere = 4
const hasAnswer = 8
const isHeavy = 16

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Writes details one after the other into a reused buffer. */
export class DetailWriter {
  bytes = Buffer.allocUnsafeSlow(64 * 1024)
  at = 0

  /**
   * Adds a detail, and returns the place at which it begins. `users` and `answers` are ranges of `from`. An
   * empty range means that there is no user or no answer.
   */
  add(
    row: Omit<RowDetail, 'user' | 'answer'>,
    from: Buffer,
    users: readonly [number, number],
    answers: readonly [number, number],
  ): number {
    const { messageId, weight } = row
    this.#makeRoom(100 + 3 * messageId.length + answers[1] - answers[0])
    const start = this.at
    const isPacked = messageId.length === 36 && uuid.test(messageId)
    this.bytes[this.at++] =
      (users[1] > users[0] ? hasUser : 0) |
      (isPacked ? isUuid : 0) |
      (row.unit === row.originPartition ? 0 : isElsewhere) |
      (answers[1] > answers[0] ? hasAnswer : 0) |
      (weight > 1 ? isHeavy : 0)
    this.#int(row.attempt)
    this.#int(row.unit)
    if (row.unit !== row.originPartition) this.#int(row.originPartition)
    this.#int(row.originOffset)
    this.#int(row.durationMicros)
    this.#int(row.waitMs)
    this.#int(Math.max(0, row.ageMs))
    if (weight > 1) this.#int(weight)
    this.at += from.copy(this.bytes, this.at, users[0], users[1])
    if (answers[1] > answers[0]) this.#int(answers[1] - answers[0])
    this.at += from.copy(this.bytes, this.at, answers[0], answers[1])
    if (isPacked) this.at += this.bytes.write(messageId.replaceAll('-', ''), this.at, 'hex')
    else this.at += this.bytes.write(messageId, this.at)
    return start
  }

  clear(): void {
    this.at = 0
  }

  #makeRoom(bytes: number): void {
    if (this.at + bytes <= this.bytes.length) return
    const grown = Buffer.allocUnsafeSlow(2 * (this.at + bytes))
    this.bytes.copy(grown, 0, 0, this.at)
    this.bytes = grown
  }

  #int(value: number): void {
    let left = value
    while (left > 0x7fff_ffff) {
      this.bytes[this.at++] = (left % 128) | 0x80
      left = Math.floor(left / 128)
    }
    while (left > 0x7f) {
      this.bytes[this.at++] = (left & 0x7f) | 0x80
      left >>>= 7
    }
    this.bytes[this.at++] = left
  }
}

/** Decodes a detail that `DetailWriter` wrote. */
export function readDetail(given: Uint8Array): RowDetail {
  const bytes = Buffer.from(given.buffer, given.byteOffset, given.length)
  let at = 1
  const flags = bytes[0] ?? 0
  const int = (): number => {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++] ?? 0
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
  }
  const attempt = int()
  const unit = int()
  const originPartition = (flags & isElsewhere) === 0 ? unit : int()
  const [originOffset, durationMicros, waitMs, ageMs] = [int(), int(), int(), int()]
  const weight = (flags & isHeavy) === 0 ? 1 : int()
  const userEnd = (flags & hasUser) === 0 ? at : at + userHashBytes
  const user = bytes.toString('hex', at, userEnd)
  at = userEnd
  const answerBytes = (flags & hasAnswer) === 0 ? 0 : int()
  const answer = bytes.toString('utf8', at, at + answerBytes)
  at += answerBytes
  const messageId = (flags & isUuid) === 0 ? bytes.toString('utf8', at) : uuidOf(bytes.toString('hex', at))
  return {
    attempt,
    unit,
    originPartition,
    originOffset,
    durationMicros,
    waitMs,
    ageMs,
    weight,
    messageId,
    user,
    answer,
  }
}

function uuidOf(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
