import { atOnce, cheapSteps, type Pieces } from '../async/pieces.ts'

/** How many values are copied to change one of them. */
const blockLength = 256
/** A map that has lost this many keys, and more than half of its keys, is made anew. */
const mostLost = 1_000

/** A block has `undefined` for each key that is removed, or that only other versions have. */
type Block<V> = readonly (V | undefined)[]

/**
 * The places of keys. All versions of a map share them, so a key keeps its place for ever, and a version
 * doesn't reach the places of keys that were added later.
 */
type Places = { readonly byKey: Map<string, number>; readonly keys: string[] }

/**
 * A map that never changes, and whose next version shares most of its memory. To make the next version takes
 * as long as it has changes, however large the map is. So a process with 100,000 destinations takes a change
 * of one of them without a pause. Keys are in the order in which they were added first.
 */
export class VersionedMap<V> implements ReadonlyMap<string, V> {
  readonly #places: Places
  readonly #blocks: readonly Block<V>[]
  readonly size: number

  private constructor(places: Places, blocks: readonly Block<V>[], size: number) {
    this.#places = places
    this.#blocks = blocks
    this.size = size
  }

  /** Returns the map itself if it is one of these. */
  static of<V>(map: ReadonlyMap<string, V>): VersionedMap<V> {
    if (map instanceof VersionedMap) return map
    const values = [...map.values()]
    const keys = [...map.keys()]
    const blocks: Block<V>[] = []
    for (let at = 0; at < values.length; at += blockLength) blocks.push(values.slice(at, at + blockLength))
    const byKey = new Map(keys.map((key, place) => [key, place]))
    return new VersionedMap({ byKey, keys }, blocks, values.length)
  }

  /** Returns the next version. `undefined`: the key isn't there any more. */
  with(changes: ReadonlyMap<string, V | undefined>): VersionedMap<V> {
    return atOnce(this.making(changes))
  }

  /** Does the same in pieces. */
  *making(changes: ReadonlyMap<string, V | undefined>): Pieces<VersionedMap<V>> {
    if (changes.size === 0) return this
    const places = this.#places
    const blocks = [...this.#blocks]
    const own = new Map<number, (V | undefined)[]>()
    let { size } = this
    let count = 0
    for (const [key, value] of changes) {
      if (++count % cheapSteps === 0) yield
      const place = places.byKey.get(key) ?? (value === undefined ? undefined : newPlace(places, key))
      if (place === undefined) continue
      const [index, at] = [Math.floor(place / blockLength), place % blockLength]
      let block = own.get(index)
      if (block === undefined) {
        while (blocks.length <= index) blocks.push([])
        block = [...(blocks[index] ?? [])]
        own.set(index, block)
        blocks[index] = block
      }
      size += Number(value !== undefined) - Number(block[at] !== undefined)
      // A list with gaps would be slower.
      while (block.length < at) block.push(undefined)
      block[at] = value
    }
    const next = new VersionedMap(places, blocks, size)
    const lost = places.keys.length - size
    return lost > mostLost && lost > size ? VersionedMap.of(new Map(next)) : next
  }

  get(key: string): V | undefined {
    const place = this.#places.byKey.get(key)
    if (place === undefined) return undefined
    return this.#blocks[Math.floor(place / blockLength)]?.[place % blockLength]
  }

  has(key: string): boolean {
    return this.get(key) !== undefined
  }

  *entries(): MapIterator<[string, V]> {
    const { keys } = this.#places
    let place = 0
    for (const block of this.#blocks) {
      for (const [at, value] of block.entries()) {
        const key = keys[place + at]
        if (key !== undefined && value !== undefined) yield [key, value]
      }
      place += blockLength
    }
  }

  *keys(): MapIterator<string> {
    for (const [key] of this.entries()) yield key
  }

  *values(): MapIterator<V> {
    for (const block of this.#blocks) for (const value of block) if (value !== undefined) yield value
  }

  [Symbol.iterator](): MapIterator<[string, V]> {
    return this.entries()
  }

  forEach(callback: (value: V, key: string, map: ReadonlyMap<string, V>) => void): void {
    for (const [key, value] of this.entries()) callback(value, key, this)
  }
}

function newPlace({ byKey, keys }: Places, key: string): number {
  const place = keys.length
  keys.push(key)
  byKey.set(key, place)
  return place
}
