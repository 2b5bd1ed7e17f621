// The part of a commit's metadata that says which records went nowhere (`docs/design/repeats.md`).
//
// The part is `~` and base64url without padding. The bytes are: the CRC-32 of the committed offset and of all
// other bytes, `since` in six bytes, and then, only if something was left out, the end of the last run in six
// bytes and a row of bits. The bits are numbers in Elias' gamma code, from the newest run to the oldest: the
// length of a run, one more than the distance to the run before it, the length of that run, and so on. Rare
// runs and long ones take a bit or two for each record between them. The zeros at the end are filling.

import { crc32 } from 'node:zlib'

/**
 * The records that went nowhere, as far as the owner of a partition knows. Every other settled record from
 * the offset `since` on was passed on. The n-th run of records that went nowhere has the offsets from
 * `starts[n]` on that are lower than `ends[n]`. Runs are ascending, don't overlap, and begin at `since` or
 * later. They aren't objects, because there may be thousands of them in each commit.
 */
export type LeftOut = {
  readonly since: number
  readonly starts: readonly number[]
  readonly ends: readonly number[]
}

const begins = '~'
const checkBytes = 4
const offsetBytes = 6
const headBytes = checkBytes + offsetBytes
const maxOffset = 2 ** 48 - 1

/**
 * The most characters of the part. Together with the metadata of all partitions, this bounds what each commit
 * costs the brokers. It has room for 8,000 records if every second one goes nowhere at random.
 */
export const maxLeftOutCharacters = 2_048

/**
 * Returns the part, in at most `characters` characters. If not everything fits, the oldest runs are left out
 * and `since` is raised above them. Returns `undefined` if there is no room at all.
 */
export function encodeLeftOut(
  { since, starts, ends }: LeftOut,
  position: number,
  characters: number,
): string | undefined {
  const bytes = Math.floor(((Math.min(characters, maxLeftOutCharacters) - begins.length) * 3) / 4)
  const lastEnd = ends.at(-1) ?? since
  if (bytes < headBytes + offsetBytes || lastEnd > maxOffset) return undefined
  const bits = new BitWriter(bytes - headBytes - offsetBytes)
  let from = since
  let after: number | undefined
  for (let index = ends.length - 1; index >= 0; index--) {
    const start = starts[index] ?? 0
    const end = ends[index] ?? 0
    const fits = after === undefined ? bits.write(end - start) : bits.write(after - end + 1, end - start)
    if (!fits) {
      from = end
      break
    }
    after = start
  }
  const hasRuns = from < lastEnd
  const buffer = Buffer.alloc(headBytes + (hasRuns ? offsetBytes + bits.byteLength : 0))
  buffer.writeUIntBE(from, checkBytes, offsetBytes)
  if (hasRuns) {
    buffer.writeUIntBE(lastEnd, headBytes, offsetBytes)
    bits.bytes.copy(buffer, headBytes + offsetBytes, 0, bits.byteLength)
  }
  buffer.writeUInt32BE(checkOf(buffer, position))
  return begins + buffer.toString('base64url')
}

/**
 * Reads the part. Returns `undefined` if it is missing, damaged, or of another committed offset. Then nobody
 * knows which records were passed on.
 */
export function decodeLeftOut(text: string, position: number): LeftOut | undefined {
  if (!text.startsWith(begins)) return undefined
  const buffer = Buffer.from(text.slice(begins.length), 'base64url')
  if (buffer.length < headBytes || buffer.readUInt32BE() !== checkOf(buffer, position)) return undefined
  const since = buffer.readUIntBE(checkBytes, offsetBytes)
  if (buffer.length === headBytes) return { since, starts: [], ends: [] }
  if (buffer.length < headBytes + offsetBytes) return undefined
  const bits = new BitReader(buffer.subarray(headBytes + offsetBytes))
  const starts: number[] = []
  const ends: number[] = []
  let end = buffer.readUIntBE(headBytes, offsetBytes)
  for (;;) {
    const length = bits.read()
    if (length === 0) return undefined
    starts.push(end - length)
    ends.push(end)
    const distance = bits.read()
    if (distance === 0) break
    end -= length + distance - 1
  }
  const isWhole = (starts.at(-1) ?? since) >= since
  return isWhole ? { since, starts: starts.toReversed(), ends: ends.toReversed() } : undefined
}

function checkOf(buffer: Buffer, position: number): number {
  return crc32(buffer.subarray(checkBytes), crc32(String(position)))
}

/** Writes numbers in Elias' gamma code: n is a 1 after as many zeros as n has further binary digits. */
class BitWriter {
  readonly bytes: Buffer
  #length = 0

  constructor(bytes: number) {
    this.bytes = Buffer.alloc(bytes)
  }

  get byteLength(): number {
    return Math.ceil(this.#length / 8)
  }

  /** Writes one or two positive numbers. Writes nothing and returns false if they don't fit. */
  write(one: number, other?: number): boolean {
    const length = lengthOf(one) + (other === undefined ? 0 : lengthOf(other))
    if (this.#length + length > 8 * this.bytes.length) return false
    this.#write(one)
    if (other !== undefined) this.#write(other)
    return true
  }

  #write(number: number): void {
    const digits = digitsOf(number)
    this.#length += digits - 1
    for (let digit = digits - 1; digit >= 0; digit--) {
      const index = this.#length >> 3
      const isOne = digit < 31 ? ((number >> digit) & 1) === 1 : Math.floor(number / 2 ** digit) % 2 === 1
      if (isOne) this.bytes[index] = (this.bytes[index] ?? 0) | (0x80 >> (this.#length & 7))
      this.#length++
    }
  }
}

/** The number of binary digits of a positive number. */
function digitsOf(number: number): number {
  return number < 2 ** 32 ? 32 - Math.clz32(number) : 64 - Math.clz32(Math.floor(number / 2 ** 32))
}

function lengthOf(number: number): number {
  return 2 * digitsOf(number) - 1
}

class BitReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** Reads a number. Returns 0 if only zeros follow. */
  read(): number {
    let zeros = 0
    for (; this.#next() === 0; zeros++) if (this.#at >= 8 * this.#bytes.length) return 0
    let number = 1
    for (; zeros > 0; zeros--) number = 2 * number + this.#next()
    return number
  }

  #next(): number {
    const bit = ((this.#bytes[this.#at >> 3] ?? 0) >> (7 - (this.#at & 7))) & 1
    this.#at++
    return bit
  }
}
