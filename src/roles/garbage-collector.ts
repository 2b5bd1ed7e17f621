import { setFlagsFromString } from 'node:v8'

/**
 * Settings of V8's garbage collector for a process that lives long and makes much that dies young (decision 030). Call it
 * before anything else: some are read when code is compiled.
 */
const flags = [
  // Otherwise the compiler may come to allocate a part of each delivery as old. It is dead at once like all of it, but keeps the
  // young ones that it refers to until the whole heap is marked, and all stands still ten times longer.
  '--no-allocation-site-pretenuring',
  // The helpers have to wait for a CPU that others use, and all stands still meanwhile: 20 ms a time instead of 4.
  '--no-parallel-scavenge',
  // The heap may grow to twice of what it needs before all of it is marked. V8 would choose a tenth of a small heap: a marking every
  // two seconds, with half a second of CPU each.
  '--heap-growing-percent=100',
]

export function tuneGarbageCollector(): void {
  setFlagsFromString(flags.join(' '))
}
