import type { Spool } from './spool.ts'

/** The most texts that are compared in memory at once: some 10 MB. */
const mostCompared = 100_000

/**
 * Returns a hash of 32 bits that depends on the whole text (FNV-1a). It is independent of the partition that
 * Kafka's partitioner chooses.
 */
export function spread(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  // Without this step, the last characters would change only the low bits.
  return (hash ^ (hash >>> 15)) >>> 0
}

/**
 * Yields the texts of a bucket, each of them once, always in the same order. A large bucket is read several
 * times, each time for a share of its texts, so that memory doesn't grow with the bucket.
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
 * Returns the number that chooses the share of a text. The low bits of the hash choose the bucket (a
 * partition has at most 256 buckets). The other bits choose the share.
 */
function shareOf(text: string): number {
  return Math.floor(spread(text) / 256)
}
