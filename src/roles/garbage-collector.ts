import { setFlagsFromString } from 'node:v8'

/** Settings of V8 for a process that lives long and makes much that dies young. */
const flags = [
  // Otherwise the compiler may come to allocate a part of each delivery as old. It is dead at once like all of it, but keeps the
  // young ones that it refers to until the whole heap is marked, and all stands still ten times longer.
  '--no-allocation-site-pretenuring',
  // The helpers have to wait for a CPU that others use, and all stands still meanwhile: 20 ms a time instead of 4.
  '--no-parallel-scavenge',
  // The old generation may grow to twice of what it needs before all of it is marked. V8 would choose a tenth more for a small
  // one: a marking every two seconds, each with a tenth of a second of CPU.
  '--heap-growing-percent=100',
  // What is young gets all the room that it will get within minutes. V8 would double it whenever as much has survived as fits: with
  // little traffic each step takes twice the time of the one before, and the process grows for hours as if it lost memory.
  '--semi-space-growth-factor=8',
]

/**
 * Small buffers share one of this size, in bytes. A body that waits for a slow customer keeps all that it shares its buffer with:
 * 64 KiB, the default of Node, make so many kept bytes that they alone have the heap marked every ten seconds.
 */
const sharedBufferBytes = 8 * 1024

/**
 * Fits the garbage collector to what a worker does (decision 030). Call it before anything else: some of it is read when code is
 * compiled.
 */
export function tuneGarbageCollector(): void {
  setFlagsFromString(flags.join(' '))
  Buffer.poolSize = sharedBufferBytes
}
