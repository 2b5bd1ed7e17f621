/**
 * Returns the CRC-32C (RFC 3720, B.4) of a part of a buffer, as an unsigned number. Takes eight bytes a step,
 * with a table for each (slicing-by-8), which is several times as fast as one byte at a time.
 */
export function crc32c(bytes: Uint8Array, start: number, end: number): number {
  let crc = -1
  let at = start
  for (; at + 8 <= end; at += 8) {
    const low =
      crc ^
      (byteAt(bytes, at) |
        (byteAt(bytes, at + 1) << 8) |
        (byteAt(bytes, at + 2) << 16) |
        (byteAt(bytes, at + 3) << 24))
    crc =
      entry(7, low & 0xff) ^
      entry(6, (low >>> 8) & 0xff) ^
      entry(5, (low >>> 16) & 0xff) ^
      entry(4, low >>> 24) ^
      entry(3, byteAt(bytes, at + 4)) ^
      entry(2, byteAt(bytes, at + 5)) ^
      entry(1, byteAt(bytes, at + 6)) ^
      entry(0, byteAt(bytes, at + 7))
  }
  for (; at < end; at++) crc = entry(0, (crc ^ byteAt(bytes, at)) & 0xff) ^ (crc >>> 8)
  return ~crc >>> 0
}

const reversedPolynomial = 0x82f63b78
/**
 * Eight tables of 256 entries. Table n starts at n × 256, and has the effect of a byte on the checksum n
 * bytes further on.
 */
const tables = makeTables()

function makeTables(): Int32Array {
  const made = new Int32Array(8 * 256)
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ reversedPolynomial : crc >>> 1
    made[byte] = crc
  }
  for (let index = 256; index < made.length; index++) {
    const before = made[index - 256] ?? 0
    made[index] = (made[before & 0xff] ?? 0) ^ (before >>> 8)
  }
  return made
}

function entry(table: number, byte: number): number {
  return tables[table * 256 + byte] ?? 0
}

function byteAt(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0
}
