/**
 * A map of which a few values are others than in an earlier map. `undefined`: the key isn't there any more.
 */
type Patch<V> = ReadonlyMap<string, V | undefined>

/**
 * A map may have so many changed keys beside an earlier map. Each further version copies them, and a whole
 * map is made once there are more. With 100,000 entries, both together cost least at about their square root.
 */
const mostPatched = 256

/**
 * Returns a map with some other values. The time that this takes depends on the number of changes, and not on
 * the size of the map. A changed key keeps its place, and a new one comes last.
 */
export function patched<V>(before: ReadonlyMap<string, V>, changes: Patch<V>): ReadonlyMap<string, V> {
  if (changes.size === 0) return before
  const whole = before instanceof PatchedMap ? before.whole : before
  const patch = new Map(before instanceof PatchedMap ? before.patch : [])
  for (const [key, value] of changes) {
    // A key that was removed comes last if it is added again.
    if (patch.has(key) && patch.get(key) === undefined && !whole.has(key)) patch.delete(key)
    patch.set(key, value)
  }
  const map = new PatchedMap(whole, patch)
  return patch.size > mostPatched ? new Map(map) : map
}

class PatchedMap<V> implements ReadonlyMap<string, V> {
  readonly whole: ReadonlyMap<string, V>
  readonly patch: Patch<V>
  readonly size: number

  constructor(whole: ReadonlyMap<string, V>, patch: Patch<V>) {
    this.whole = whole
    this.patch = patch
    let { size } = whole
    for (const [key, value] of patch) size += Number(value !== undefined) - Number(whole.has(key))
    this.size = size
  }

  get(key: string): V | undefined {
    const changed = this.patch.get(key)
    return changed !== undefined || this.patch.has(key) ? changed : this.whole.get(key)
  }

  has(key: string): boolean {
    return this.get(key) !== undefined
  }

  *entries(): MapIterator<[string, V]> {
    for (const [key, value] of this.whole) {
      if (!this.patch.has(key)) yield [key, value]
      else {
        const changed = this.patch.get(key)
        if (changed !== undefined) yield [key, changed]
      }
    }
    for (const [key, value] of this.patch) if (value !== undefined && !this.whole.has(key)) yield [key, value]
  }

  *keys(): MapIterator<string> {
    for (const [key] of this.entries()) yield key
  }

  *values(): MapIterator<V> {
    for (const [, value] of this.entries()) yield value
  }

  [Symbol.iterator](): MapIterator<[string, V]> {
    return this.entries()
  }

  forEach(callback: (value: V, key: string, map: ReadonlyMap<string, V>) => void): void {
    for (const [key, value] of this.entries()) callback(value, key, this)
  }
}
