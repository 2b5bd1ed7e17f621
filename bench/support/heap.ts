import process from 'node:process'
import { collectGarbage } from '../../test/support/collect-garbage.ts'

/** Returns the memory in use by JavaScript and its buffers, in bytes. */
export function heapBytes(): number {
  collectGarbage()
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
