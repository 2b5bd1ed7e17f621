import { createHash } from 'node:crypto'
import type { Catalog, Source } from '../catalog/catalog.ts'
import { TokenBucket } from '../pacing/token-bucket.ts'

/** The sources of a catalog by their keys, and what each may still send. Follows the catalog by itself. */
export class Sources {
  readonly #current: () => Catalog
  readonly #now: () => number
  #catalog: Catalog | undefined
  #byWriteKey: ReadonlyMap<string, Source> = new Map()
  #byServerKey: ReadonlyMap<string, readonly Source[]> = new Map()
  #buckets = new Map<string, { perSecond: number; bucket: TokenBucket }>()

  /** `now`: milliseconds of a monotonic clock. */
  constructor(current: () => Catalog, now: () => number) {
    this.#current = current
    this.#now = now
  }

  /** The source of the first key that is a write key. */
  withWriteKey(keys: Iterable<string>): Source | undefined {
    this.#follow()
    for (const key of keys) {
      const source = this.#byWriteKey.get(key)
      if (source !== undefined) return source
    }
    return undefined
  }

  /** The sources of all that are write keys. */
  withWriteKeys(keys: Iterable<string>): readonly Source[] {
    this.#follow()
    const found = new Set<Source>()
    for (const key of keys) {
      const source = this.#byWriteKey.get(key)
      if (source !== undefined) found.add(source)
    }
    return [...found]
  }

  /** The sources that the first key that is a server key stands for; none when none is. */
  withServerKey(keys: readonly string[]): readonly Source[] {
    this.#follow()
    for (const key of keys) {
      const sources = this.#byServerKey.get(digestOf(key))
      if (sources !== undefined) return sources
    }
    return []
  }

  /**
   * Counts messages of a source (none: only asks) against its rate: 0 when it may send, else the milliseconds
   * until it may.
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

  /** For messages that were counted by `take`, and then refused for what their source can't help. */
  giveBack({ id }: Source, messages: number): void {
    this.#buckets.get(id)?.bucket.giveBack(messages)
  }

  #follow(): void {
    const catalog = this.#current()
    if (catalog === this.#catalog) return
    this.#catalog = catalog
    const sources = [...catalog.sources.values()]
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
    this.#buckets = new Map([...this.#buckets].filter(([id]) => catalog.sources.has(id)))
  }
}

/** Looked up by its digest, a secret can't be found out by the time that a comparison takes. */
function digestOf(key: string): string {
  return createHash('sha256').update(key).digest('base64')
}
