import { constants, setPriority } from 'node:os'

/**
 * Does a work with the lowest priority of the processor, because in an installation it runs on another
 * machine.
 */
export async function elsewhere<T>(work: () => Promise<T>): Promise<T> {
  setPriority(constants.priority.PRIORITY_LOW)
  try {
    return await work()
  } finally {
    try {
      setPriority(constants.priority.PRIORITY_NORMAL)
    } catch {
      // Only root may raise a priority. What follows takes longer then.
    }
  }
}
