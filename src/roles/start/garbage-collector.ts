import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import type { Part } from './parts.ts'

/** Settings of V8 for a process that runs for long and allocates many objects that live for a short time. */
const flags = [
  // Without this flag, the compiler may decide to allocate a part of each delivery in the old generation.
  // When the delivery is over, this part becomes garbage. But until the whole heap is marked, it keeps the
  // young objects alive to which it refers. Pauses then take ten times longer.
  '--no-allocation-site-pretenuring',
  // The collector's parallel threads may have to wait for a CPU that other processes use. The process pauses
  // until they have finished, which takes 20 ms instead of 4 ms.
  '--no-parallel-scavenge',
  // Lets the old generation grow to three times its live size before it is marked. V8 would let a small heap
  // grow by only a tenth. The heap would then be marked every two seconds, which takes a tenth of a second of
  // CPU each time.
  '--heap-growing-percent=200',
]

/**
 * The size in bytes of the buffer that small buffers share. A body that waits for a slow customer keeps its
 * whole shared buffer alive. With Node's default of 64 KiB, the bytes kept alive in this way would alone
 * cause the heap to be marked every ten seconds.
 */
const sharedBufferBytes = 8 * 1024

/**
 * The size of a semi-space for young objects, in MiB. A collection copies the live objects, and the process
 * pauses meanwhile. With a larger size, the pauses are longer. The reason is that more objects are alive at a
 * collection, because the objects of requests to an endpoint that never answers live for 5 s. With a smaller
 * size, a delivery takes a fifth more CPU. The reason is that the objects of requests to endpoints that
 * answer after 150 ms are copied more often. V8 would derive the size from the machine's memory, up to 64
 * MiB.
 */
const youngMb = 16

/**
 * The flag that sets `youngMb` in processes that Sluice forks. It is a flag because V8 reads this setting
 * only when a process starts.
 */
export const semiSpaceFlag = `--max-semi-space-size=${youngMb}`

/**
 * A process counts as busy if it collects young objects this many times within `busyMs`. With about 500
 * deliveries a second, it is busy after five seconds. With 10,000 a second, it is busy at once. A process
 * that only starts makes fewer collections, so it doesn't count as busy.
 */
const busyCollections = 40
const busyMs = 5_000

/**
 * Keeps the semi-space at the size with which V8 begins, 1 MiB. During a start, many objects with a long life
 * are made. Because of them, V8 would give the process 16 MiB that it doesn't need until it is busy.
 */
export function holdYoungRoom(): void {
  setYoungGrowth(1)
}

/**
 * Tunes the garbage collector for a worker (decision 030). Call this function before any other, because V8
 * reads some of the settings when it compiles code.
 */
export function tuneGarbageCollector(): void {
  setFlagsFromString(flags.join(' '))
  limitSharedBuffers()
}

/**
 * Limits the memory that small buffers share, for a process in which some of these buffers wait for long.
 * Call this function before any other.
 */
export function limitSharedBuffers(): void {
  Buffer.poolSize = sharedBufferBytes
}

/**
 * Lets the semi-space grow to `youngMb` in one step when the process is busy, and no further. Without this
 * function, V8 would double the semi-space step by step. It does so each time that the bytes that survive
 * collections add up to the size of the semi-space. With little traffic the process would then grow for
 * hours, as if it leaked memory. V8 shrinks the semi-space of an idle process, so this function looks at the
 * size after each collection.
 */
export function growYoungRoomWhenBusy(): Part {
  const recentMs: number[] = []
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (isMinor(entry)) recentMs.push(entry.startTime)
    recentMs.splice(0, recentMs.length - busyCollections)
    const [oldestMs = 0] = recentMs
    const isBusy = recentMs.length === busyCollections && performance.now() - oldestMs < busyMs
    setYoungGrowth(isBusy ? Math.max(1, Math.floor(youngMb / youngRoomMb())) : 1)
  })
  observer.observe({ entryTypes: ['gc'] })
  return { stop: () => observer.disconnect() }
}

/** Returns true for a collection of young objects alone. */
function isMinor(entry: PerformanceEntry): boolean {
  const detail: unknown = 'detail' in entry ? entry.detail : undefined
  return (
    typeof detail === 'object' &&
    detail !== null &&
    'kind' in detail &&
    detail.kind === constants.NODE_PERFORMANCE_GC_MINOR
  )
}

function setYoungGrowth(factor: number): void {
  setFlagsFromString(`--semi-space-growth-factor=${factor}`)
}

/** Returns the size in MiB of one of the two semi-spaces between which V8 copies young objects. */
function youngRoomMb(): number {
  const young = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')
  if (young === undefined) return youngMb
  return Math.max(1, (young.space_used_size + young.space_available_size) / 1024 ** 2)
}
