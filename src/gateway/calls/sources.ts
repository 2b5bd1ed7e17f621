import { createHash } from 'node:crypto'
import type { Catalog, Source } from '../../catalog/catalog.ts'
import { TokenBucket } from '../../async/token-bucket.ts'

/**
 * Finds the sources of the catalog by their keys, and applies the rate limit of each source. Always uses the
 * present catalog.
 */
export class Sources {
  readonly #current: () => Catalog
  readonly #now: () => number
  #present: Catalog['sources'] | undefined
  #byWriteKey: ReadonlyMap<string, Source> = new Map()
  #byServerKey: ReadonlyMap<string, readonly Source[]> = new Map()
  #buckets = new Map<string, { perSecond: number; bucket: TokenBucket }>()

  /** `now`: milliseconds of a monotonic clock. */
  constructor(current: () => Catalog, now: () => number) {
    this.#current = current
    this.#now = now
  }

  /** Returns the source of the first of `keys` that is a write key. */
  withWriteKey(keys: Iterable<string>): Source | undefined {
    this.#follow()
    for (const key of keys) {
      const source = this.#byWriteKey.get(key)
      if (source !== undefined) return source
    }
    return undefined
  }

  withWriteKeys(keys: Iterable<string>): readonly Source[] {
    this.#follow()
    const found = new Set<Source>()
    for (const key of keys) {
      const source = this.#byWriteKey.get(key)
      if (source !== undefined) found.add(source)
    }
    return [...found]
  }

  /**
   * Returns the sources of the first of `keys` that is a server key. Returns an empty list if no key is a
   * server key.
   */
  withServerKey(keys: readonly string[]): readonly Source[] {
    this.#follow()
    for (const key of keys) {
      const sources = this.#byServerKey.get(digestOf(key))
      if (sources !== undefined) return sources
    }
    return []
  }

  /**
   * Counts messages of a source against the source's rate limit. Returns 0 if the source may send the
   * messages now. Otherwise returns the milliseconds until it may send them. If `messages` is 0, counts
   * nothing, and only says whether the source may send now.
   */
  take({ id, maxPerSecond }: Source, messages: number): number {
    if (maxPerSecond === undefined) return 0
    const nowMs = this.#now()
    const rate = { perSecond: maxPerSecond, burst: Math.max(1, maxPerSecond) }
    let kept = this.#buckets.get(id)
    if (kept === undefined) {
      kept = { perSecond: maxPerSecond, bucket: new TokenBucket(rate, nowMs) }
      this.#buckets.set(id, kept)
    } else if (kept.perSecond !== maxPerSecond) {
      kept.perSecond = maxPerSecond
      kept.bucket.setRate(rate, nowMs)
    }
    return kept.bucket.take(nowMs, messages)
  }

  /**
   * Undoes a call of `take` for these messages. Call this method if the gateway refuses the messages after
   * all, for a reason that isn't the source's fault.
   */
  giveBack({ id }: Source, messages: number): void {
    this.#buckets.get(id)?.bucket.giveBack(messages)
  }

  #follow(): void {
    const { sources: present } = this.#current()
    if (present === this.#present) return
    this.#present = present
    const sources = [...present.values()]
    this.#byWriteKey = new Map(
      sources.flatMap((source) => source.writeKeys.map((key): [string, Source] => [key, source])),
    )
    const byServerKey = new Map<string, Source[]>()
    for (const source of sources) {
      for (const key of source.serverKeys) {
        const digest = digestOf(key)
        byServerKey.set(digest, [...(byServerKey.get(digest) ?? []), source])
      }
    }
    this.#byServerKey = byServerKey
    this.#buckets = new Map([...this.#buckets].filter(([id]) => present.has(id)))
  }
}

/**
 * Returns the digest of a key. Keys are looked up by their digests, so that the time of a comparison reveals
 * nothing about a key.
 */
function digestOf(key: string): string {
  return createHash('sha256').update(key).digest('base64')
}
