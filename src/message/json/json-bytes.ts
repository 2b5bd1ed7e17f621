// A scan over JSON bytes that finds out whether JSON.stringify would write the same bytes.

export const quote = 0x22

export const comma = 0x2c

export const colon = 0x3a

export const openBracket = 0x5b

export const backslash = 0x5c

export const closeBracket = 0x5d

export const openBrace = 0x7b

export const closeBrace = 0x7d

/**
 * Table of bytes. It has a 1 for each byte that stands for itself in a JSON string. All bytes above ASCII
 * count too, because the caller has checked that they form valid UTF-8.
 */
export const plain = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x20 && byte !== quote && byte !== backslash ? 1 : 0,
)

/**
 * Table of bytes. It has a 1 for each byte that may follow a backslash. The escapes `\/` and `\u` are left
 * out, because JSON.stringify spells such characters differently.
 */
export const escapable = Uint8Array.from({ length: 256 }, (_, byte) =>
  '"\\bfnrt'.includes(String.fromCharCode(byte)) ? 1 : 0,
)

/**
 * Parameters of the hash function FNV-1a with 32 bits. If two keys of an object have the same hash, the
 * object doesn't count as canonical.
 */
export const hashSeed = 0x811c9dc5 | 0

export const hashFactor = 0x01000193

export function hashOf(name: string): number {
  return Buffer.from(name).reduce((hash, byte) => Math.imul(hash ^ byte, hashFactor), hashSeed)
}

export function isAt(bytes: Buffer, start: number, end: number, sought: Buffer): boolean {
  if (end - start !== sought.length) return false
  for (let i = 0; i < sought.length; i++) if (bytes[start + i] !== sought[i]) return false
  return true
}

/** `Buffer.copy` is used only to copy at least this number of bytes. Fewer are copied faster one by one. */
const leastCopied = 40

export function copyBytes(from: Buffer, start: number, end: number, to: Buffer, toStart: number): void {
  if (end - start >= leastCopied) from.copy(to, toStart, start, end)
  else for (let at = start, next = toStart; at < end; at++) to[next++] = from[at] ?? 0
}
