import { leastOf } from './cost.ts'
import type { Random } from './random.ts'

const mostChanges = 4
const longestRun = 8

/**
 * Returns a damaged copy of `bytes`. One to four times, some bytes are changed, inserted, left out, repeated
 * or cut off, or replaced by a piece of one of `others`.
 */
export function damage(random: Random, bytes: Buffer, others: readonly Buffer[]): Buffer {
  let damaged = Buffer.from(bytes)
  for (let left = 1 + random.below(mostChanges); left > 0; left--) damaged = change(random, damaged, others)
  return damaged
}

function change(random: Random, bytes: Buffer, others: readonly Buffer[]): Buffer<ArrayBuffer> {
  const at = random.below(bytes.length + 1)
  const end = Math.min(bytes.length, at + random.below(longestRun))
  const put = (...parts: Uint8Array[]) => Buffer.concat([bytes.subarray(0, at), ...parts])
  switch (random.below(7)) {
    case 0: {
      const flipped = Buffer.from(bytes)
      if (at < bytes.length) flipped[at] = (flipped[at] ?? 0) ^ (1 << random.below(8))
      return flipped
    }
    case 1:
      return put(random.bytes(1 + random.below(longestRun)), bytes.subarray(at))
    case 2:
      return put(bytes.subarray(end))
    case 3:
      return put(bytes.subarray(at, end), bytes.subarray(at))
    case 4:
      return random.oneIn(4)
        ? put()
        : put(Buffer.alloc(1 + random.below(4), random.pick([0, 0xff, 0x7f, 0x80])), bytes.subarray(end))
    case 5:
      return put(random.bytes(end - at), bytes.subarray(end))
    default: {
      const other = random.pick(others)
      const from = random.below(other.length + 1)
      return put(other.subarray(from, from + random.below(64)), bytes.subarray(end))
    }
  }
}

/**
 * Returns a shorter input that still fails. Leaves out pieces as long as `fails` returns true for the rest.
 * So the report of a failure is short.
 */
export function shortest(bytes: Buffer, fails: (candidate: Buffer) => boolean): Buffer {
  let best = bytes
  for (let piece = Math.ceil(best.length / 2); piece >= 1; piece = Math.floor(piece / 2)) {
    for (let at = 0; at < best.length;) {
      const candidate = Buffer.concat([best.subarray(0, at), best.subarray(at + piece)])
      if (candidate.length < best.length && fails(candidate)) best = candidate
      else at += piece
    }
  }
  return best
}

/**
 * Returns the shortest time that `work` takes in some runs, in milliseconds. The first run that takes less
 * than `mostMs` is the last one, so a pause of the machine doesn't count. It isn't CPU time, because the
 * system counts that in steps which are longer than most of this work.
 */
export function timeOf(work: () => unknown, mostMs: number): number {
  return leastOf(mostMs, () => {
    const startedMs = performance.now()
    work()
    return performance.now() - startedMs
  })
}

const watched = [Object, Array, String, Number, Boolean, Function, Map, Set, Promise, Buffer].map(
  ({ prototype }) => [prototype, Reflect.ownKeys(prototype).length] as const,
)

/** Returns true if nothing was added to the prototypes that all objects share. */
export function isUnpolluted(): boolean {
  return watched.every(([prototype, count]) => Reflect.ownKeys(prototype).length === count)
}
