/**
 * A Bloom filter with a single hash. It is small and quick to query, and recognizes most keys that were never
 * added.
 */
export class KeyFilter {
  readonly #bits: Uint8Array
  readonly #mask: number
  #added = 0

  /**
   * @param bits The size of the filter in bits, a power of two. When a tenth of the bits are set, the filter
   * wrongly reports one in ten unknown keys as known.
   */
  constructor(bits: number) {
    this.#bits = new Uint8Array(bits / 8)
    this.#mask = bits - 1
  }

  get isEmpty(): boolean {
    return this.#added === 0
  }

  /** How often a key was added, also one that was there already. */
  get added(): number {
    return this.#added
  }

  /** Adds a key. Returns false if the key had certainly not been added before. */
  add(key: string): boolean {
    const at = hashOf(key) & this.#mask
    const before = this.#bits[at >>> 3] ?? 0
    const bit = 1 << (at & 7)
    this.#bits[at >>> 3] = before | bit
    this.#added++
    return (before & bit) !== 0
  }

  /** Returns false if the key has certainly never been added. */
  mayHold(key: string): boolean {
    if (this.isEmpty) return false
    const at = hashOf(key) & this.#mask
    return ((this.#bits[at >>> 3] ?? 0) & (1 << (at & 7))) !== 0
  }
}

/** Hashes a text by FNV-1a, and then mixes the bits of the hash. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return hash ^ (hash >>> 13)
}
