import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import type { Part } from './parts.ts'

/** Settings of V8 for a process that lives long and makes much that dies young. */
const flags = [
  // Otherwise the compiler may come to allocate a part of each delivery as old. It is dead at once like all
  // of it, but keeps the young ones that it refers to until the whole heap is marked, and all stands still
  // ten times longer.
  '--no-allocation-site-pretenuring',
  // The helpers have to wait for a CPU that others use, and all stands still meanwhile: 20 ms a time instead
  // of 4.
  '--no-parallel-scavenge',
  // The old generation may grow to three times of what it needs before all of it is marked. V8 would choose a
  // tenth more for a small one: a marking every two seconds, each with a tenth of a second of CPU.
  '--heap-growing-percent=200',
]

/**
 * Small buffers share one of this size, in bytes. A body that waits for a slow customer keeps all that it
 * shares its buffer with: 64 KiB, the default of Node, make so many kept bytes that they alone have the heap
 * marked every ten seconds.
 */
const sharedBufferBytes = 8 * 1024

/**
 * The room for what is young, in MiB. A collection stops the process for as long as it takes to copy what
 * lives, and that grows with the room: requests to an endpoint that never answers live for 5 s. With less,
 * those to endpoints that take 150 ms would be copied so often that a delivery takes a fifth more CPU. V8
 * would derive it from the memory of the machine, up to 64.
 */
const youngMb = 16

/** For processes that are started by us: V8 reads this one at the start only. */
export const semiSpaceFlag = `--max-semi-space-size=${youngMb}`

/**
 * Fits the garbage collector to what a worker does (decision 030). Call it before anything else: some of it
 * is read when code is compiled.
 */
export function tuneGarbageCollector(): Part {
  setFlagsFromString(flags.join(' '))
  Buffer.poolSize = sharedBufferBytes
  limitYoungGrowth()
  const observer = new PerformanceObserver(limitYoungGrowth)
  observer.observe({ entryTypes: ['gc'] })
  return { stop: () => observer.disconnect() }
}

/**
 * Has the room for what is young grow to `youngMb` in one step, and no further. V8 would double it whenever
 * as much has survived as fits: with little traffic the process grows for hours as if it lost memory. It
 * takes the room back from a process that has nothing to do, so this is looked at after each collection.
 */
function limitYoungGrowth(): void {
  const factor = Math.max(1, Math.floor(youngMb / youngRoomMb()))
  setFlagsFromString(`--semi-space-growth-factor=${factor}`)
}

/** One of the two halves between which V8 copies what is young. */
function youngRoomMb(): number {
  const young = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')
  if (young === undefined) return youngMb
  return Math.max(1, (young.space_used_size + young.space_available_size) / 1024 ** 2)
}
