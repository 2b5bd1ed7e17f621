/** Tells of most keys that they were never added. A Bloom filter of one hash: small, and quick to ask. */
export class KeyFilter {
  readonly #bits: Uint8Array
  readonly #mask: number
  #isEmpty = true

  /**
   * @param bits how many, a power of two: one key in so many tenths of them is taken for known when a tenth
   * is used
   */
  constructor(bits: number) {
    this.#bits = new Uint8Array(bits / 8)
    this.#mask = bits - 1
  }

  get isEmpty(): boolean {
    return this.#isEmpty
  }

  /** False: it was never added before. */
  add(key: string): boolean {
    const at = hashOf(key) & this.#mask
    const before = this.#bits[at >>> 3] ?? 0
    const bit = 1 << (at & 7)
    this.#bits[at >>> 3] = before | bit
    this.#isEmpty = false
    return (before & bit) !== 0
  }

  /** False: it was never added. */
  mayHold(key: string): boolean {
    if (this.#isEmpty) return false
    const at = hashOf(key) & this.#mask
    return ((this.#bits[at >>> 3] ?? 0) & (1 << (at & 7))) !== 0
  }
}

/** FNV-1a, mixed at the end. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return hash ^ (hash >>> 13)
}
