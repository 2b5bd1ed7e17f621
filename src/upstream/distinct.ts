import type { Spool } from './spool.ts'

/** So many texts are compared in memory at once: some 10 MB. */
const mostCompared = 100_000

/**
 * A number of 32 bits that depends on all of the text (FNV-1a), and not on where Kafka's partitioner puts it.
 */
export function spread(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  // The last characters would move only the low bits otherwise.
  return (hash ^ (hash >>> 15)) >>> 0
}

/**
 * The texts of a bucket, each once, always in the same order. A large bucket is read several times, each time
 * for a share of its texts, so that memory stays flat.
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

/** Buckets are chosen by the low bits, of at most so many for a partition; shares by the others. */
function shareOf(text: string): number {
  return Math.floor(spread(text) / 256)
}
