import { blockFormat, userHashBytes } from './log-record.ts'

/**
 * The fields of a record to write, in the order of the schema. Some fields, such as `kind`, have a list of
 * allowed words in `log-record.ts`. The value of such a field is the position of a word in the list.
 */
export type WrittenState = {
  kind: number
  atMs: number
  isEnd: boolean
  weight: number
  destination: string
  hook: string
  source: string
  messageId: string
  messageType: string
  originTopic: string
  originPartition: number
  originOffset: number
  attempt: number
  verdict: number
  outcome: number
  status: number
  durationMs: number
  reason: string
  error: string
  waitMs: number
  firstSeenMs: number
  /**
   * The keyed hash of the user, as a text with one character for each byte of the hash. It is empty if users
   * aren't hashed, or if the delivery has no key.
   */
  user: string
  job: string
  answer: Uint8Array | undefined
  /** The hashes of the message's indexed values, one after the other. It is empty if none is indexed. */
  values: string
}

const initialBytes = 4_096
/** An upper limit on the bytes of a record without its texts. Each number takes at most ten bytes. */
const fixedBytes = 240
/**
 * The longest text that is written, in characters. Longer texts are cut off. Sluice's own texts are never
 * this long.
 */
const maxTextCharacters = 1_024
/**
 * The number of bytes that are left free before the records, for the format version, the block's time and the
 * number of records.
 */
const headBytes = 32
/**
 * The last byte of a block that has values. The last byte of any other block is 0, which ends its records.
 */
export const valuesMark = 1
/** The bytes at the end of a block that has values: the length of the values (UInt32LE), and the mark. */
export const valuesEndBytes = 5

/**
 * Writes the records of one unit as one block, in Avro's binary encoding of `schemas/attempts.avsc`. No Avro
 * library is used. The values are written directly into a reused buffer, without creating objects.
 *
 * If a record has indexed values, the values of all records follow the block: for each record a byte with the
 * number of its hashes, and then the hashes. Readers that don't know them see the block alone.
 */
export class BlockWriter {
  #bytes = Buffer.allocUnsafeSlow(initialBytes)
  #at = headBytes
  #endAt = 0
  #sinceMs = 0
  #count = 0
  /** The indexed values of each record. `undefined`: no record has any yet. */
  #values: string[] | undefined

  /** The size of the records that wait in this writer, in bytes. */
  get length(): number {
    return this.#at - headBytes
  }

  get count(): number {
    return this.#count
  }

  add(state: WrittenState): void {
    if (this.#count === 0) this.#sinceMs = state.atMs
    if (state.values !== '') this.#values ??= Array.from({ length: this.#count }, () => '')
    this.#values?.push(state.values)
    this.#count++
    this.#makeRoom(state)
    this.#int(state.kind)
    this.#int(state.atMs - this.#sinceMs)
    this.#endAt = this.#at
    this.#bytes[this.#at++] = state.isEnd ? 1 : 0
    this.#int(state.weight)
    this.#text(state.destination)
    this.#text(state.hook)
    this.#text(state.source)
    this.#text(state.messageId)
    this.#text(state.messageType)
    this.#text(state.originTopic)
    this.#int(state.originPartition)
    this.#int(state.originOffset)
    this.#int(state.attempt)
    this.#int(state.verdict)
    this.#int(state.outcome)
    this.#int(state.status)
    this.#int(Math.round(state.durationMs * 1_000))
    this.#text(state.reason)
    this.#text(state.error)
    this.#int(state.waitMs)
    this.#int(state.atMs - state.firstSeenMs)
    this.#binary(state.user)
    this.#text(state.job)
    this.#data(state.answer)
  }

  /** Marks the last added record as the end of its delivery. */
  markEnd(): void {
    this.#bytes[this.#endAt] = 1
  }

  /** Empties the writer. Returns the added records as the value of a Kafka record, in a new buffer. */
  take(): Buffer {
    const end = this.#at
    this.#bytes[end] = 0
    this.#at = 0
    this.#int(blockFormat)
    this.#int(this.#sinceMs)
    this.#int(this.#count)
    const head = this.#at
    const values = this.#takeValues()
    const block = Buffer.allocUnsafe(head + end - headBytes + 1 + values.length)
    this.#bytes.copy(block, 0, 0, head)
    const next = head + this.#bytes.copy(block, head, headBytes, end + 1)
    values.copy(block, next)
    this.#at = headBytes
    this.#count = 0
    return block
  }

  #takeValues(): Buffer {
    if (this.#values === undefined) return noValues
    const texts = this.#values.map((hashes) => String.fromCharCode(hashes.length / userHashBytes) + hashes)
    this.#values = undefined
    const values = Buffer.from(texts.join(''), 'latin1')
    const end = Buffer.alloc(valuesEndBytes, valuesMark)
    end.writeUInt32LE(values.length, 0)
    return Buffer.concat([values, end])
  }

  #makeRoom(state: WrittenState): void {
    const characters =
      Math.min(state.messageId.length, maxTextCharacters) +
      Math.min(state.source.length, maxTextCharacters) +
      Math.min(state.reason.length, maxTextCharacters) +
      Math.min(state.error.length, maxTextCharacters) +
      Math.min(state.messageType.length, maxTextCharacters) +
      Math.min(state.job.length, maxTextCharacters) +
      state.destination.length +
      state.hook.length +
      state.originTopic.length +
      state.user.length
    const wanted = this.#at + fixedBytes + 3 * characters + (state.answer?.length ?? 0)
    if (wanted <= this.#bytes.length) return
    const grown = Buffer.allocUnsafeSlow(2 * wanted)
    this.#bytes.copy(grown, 0, 0, this.#at)
    this.#bytes = grown
  }

  /**
   * Writes a number up to 2^52 in zigzag encoding. A larger number is written as 2^52, because otherwise the
   * reader would take the whole block for a damaged one.
   */
  #int(value: number): void {
    const bytes = this.#bytes
    let at = this.#at
    let left = Math.min(value < 0 ? -2 * value - 1 : 2 * value, 2 ** 53)
    while (left > 0x7fff_ffff) {
      bytes[at++] = (left % 128) | 0x80
      left = Math.floor(left / 128)
    }
    while (left > 0x7f) {
      bytes[at++] = (left & 0x7f) | 0x80
      left >>>= 7
    }
    bytes[at++] = left
    this.#at = at
  }

  #text(given: string): void {
    const text = given.length > maxTextCharacters ? given.slice(0, maxTextCharacters) : given
    const start = this.#at
    this.#binary(text)
    // Nearly all texts are ASCII. For ASCII, writing character by character is faster.
    if (this.#isWide) {
      this.#at = start
      this.#int(Buffer.byteLength(text))
      this.#at += this.#bytes.write(text, this.#at)
    }
  }

  #isWide = false

  /**
   * Writes the length of a text, and then one byte for each character. Sets `#isWide` to true if a character
   * is not ASCII. In that case, the written bytes aren't the text in UTF-8.
   */
  #binary(text: string): void {
    this.#int(text.length)
    const bytes = this.#bytes
    let at = this.#at
    let all = 0
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index)
      all |= code
      bytes[at++] = code
    }
    this.#at = at
    this.#isWide = all > 0x7f
  }

  #data(data: Uint8Array | undefined): void {
    this.#int(data?.length ?? 0)
    if (data === undefined) return
    this.#bytes.set(data, this.#at)
    this.#at += data.length
  }
}

const noValues = Buffer.alloc(0)
