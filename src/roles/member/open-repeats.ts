import type { Config } from '../../config/schema.ts'
import { Repeats } from '../../repeats/repeats.ts'
import { StartError } from '../start/start-error.ts'

/**
 * Reserves the memory for recognizing repeats, unless that is switched off. Each of the `processes` processes
 * reserves the same amount. Throws if all processes together need more memory than the container may use
 * (`limitBytes`). Without this check, the start would succeed, because the memory fills up only when messages
 * arrive. The container would be killed later.
 */
export function openRepeats(
  { windowMs, messages }: Config['repeats'],
  processes: number,
  limitBytes: number = process.constrainedMemory(),
): Repeats | undefined {
  if (windowMs === 0) return undefined
  const repeats = new Repeats({ windowMs, messages })
  const bytes = repeats.bytes * processes
  // If the container has no limit, Node reports 0, or a number that is larger than any memory.
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
