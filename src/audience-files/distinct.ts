import type { Spool } from './spool.ts'

/** Limit on the texts that are compared in memory at once. They take about 10 MB. */
const mostCompared = 100_000

/**
 * Returns a hash of 32 bits of the whole text (FNV-1a). The hash is independent of the partition that Kafka's
 * partitioner chooses for the text.
 */
export function spread(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  // Without this step, the last characters would change only the low bits of the hash.
  return (hash ^ (hash >>> 15)) >>> 0
}

/**
 * Yields the texts of a bucket, each text once and always in the same order. A large bucket is read several
 * times. Each reading yields a part of the texts, so that memory doesn't grow with the bucket.
 */
export function* distinct(
  spool: Pick<Spool, 'count' | 'read'>,
  bucket: number,
  { most = mostCompared }: { most?: number } = {},
): Generator<string> {
  const shares = Math.max(1, Math.ceil(spool.count(bucket) / most))
  for (let share = 0; share < shares; share++) {
    const seen = new Set<string>()
    for (const texts of spool.read(bucket)) {
      for (const text of texts) {
        if (shares > 1 && shareOf(text) % shares !== share) continue
        if (seen.has(text)) continue
        seen.add(text)
        yield text
      }
    }
  }
}

/**
 * Returns the number that decides in which reading of its bucket a text is yielded. The low bits of the hash
 * choose the bucket (a partition has at most 256 buckets). The other bits choose the reading.
 */
function shareOf(text: string): number {
  return Math.floor(spread(text) / 256)
}
