import type { Config } from '../config/schema.ts'
import { Repeats } from '../repeats/repeats.ts'
import { StartError } from './start-error.ts'

/**
 * Creates the memory of repeats, unless it is switched off. Throws if the memories of repeats of all
 * `processes` together need more than `limitBytes`, the memory that the container may use. A memory of
 * repeats fills up only when messages arrive. So without this check, the start would succeed, and the
 * container would be killed later.
 */
export function openRepeats(
  { windowMs, messages }: Config['repeats'],
  processes: number,
  limitBytes: number = process.constrainedMemory(),
): Repeats | undefined {
  if (windowMs === 0) return undefined
  const repeats = new Repeats({ windowMs, messages })
  const bytes = repeats.bytes * processes
  // Without a limit, the system says 0, or more than any machine has.
  if (limitBytes > 0 && bytes > limitBytes) {
    throw new StartError(
      `repeats.messages (${messages}) needs ${inMb(repeats.bytes)} MB in each of ${processes} processes, and the container has ${inMb(limitBytes)} MB in all. Set a smaller number, or raise the container's memory limit.`,
    )
  }
  return repeats
}

function inMb(bytes: number): number {
  return Math.round(bytes / 1_000_000)
}
