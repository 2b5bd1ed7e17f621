import { setTimeout as delay } from 'node:timers/promises'
import { BenchmarkFailure } from './failure.ts'
import { watchOthers } from './machine-cpu.ts'
import { say } from './say.ts'
import { percent } from './table.ts'

/** The largest share of the machine that other programs may use. Above it, they would distort the figures. */
const maxOthersShare = 0.1
const tries = 4
const sampleMs = 3_000
const longestWaitMs = 120_000

/**
 * How long a benchmark waits for quiet, and repeats runs that were disturbed, over all of its runs. When this
 * time is over, it takes each run as it is. A result that says that it was disturbed is worth more than none.
 */
export class Patience {
  #leftMs: number

  constructor(ms: number) {
    this.#leftMs = ms
  }

  get isOver(): boolean {
    return this.#leftMs <= 0
  }

  /** Counts the time that `work` takes. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    const startMs = performance.now()
    try {
      return await work()
    } finally {
      this.#leftMs -= performance.now() - startMs
    }
  }
}

/** A run with its fault, if it has one. */
export type Tried<T> = T & { othersShare: number; fault: string | undefined }

/**
 * Measures a run, and repeats it if other programs of the machine disturbed it, even if it had a fault. Fails
 * if all tries were disturbed. Fails with the fault of a run that wasn't disturbed. If the patience is over,
 * takes the first run, disturbed or not. If it was disturbed, its fault may be a consequence of that.
 */
export async function measureInQuiet<T>(
  measure: () => Promise<Tried<T>>,
  patience = new Patience(Number.POSITIVE_INFINITY),
): Promise<Tried<T>> {
  for (let attempt = 1; ; attempt++) {
    const wasOver = patience.isOver
    if (!wasOver) await patience.during(waitForQuiet)
    const measured = attempt === 1 ? await measure() : await patience.during(measure)
    const { othersShare, fault } = measured
    if (othersShare <= maxOthersShare) return faultless(measured)
    const problem = `other programs used ${percent(othersShare)} of the machine${fault === undefined ? '' : ` (${fault})`}`
    if (wasOver) {
      say(`${problem}: this run is taken as it is`)
      return measured
    }
    if (attempt === tries) throw new BenchmarkFailure(`${problem}, and ${tries} runs found no quiet`)
    say(`${problem}: this run is made again`)
  }
}

export function faultless<T>(measured: Tried<T>): Tried<T> {
  if (measured.fault !== undefined) throw new BenchmarkFailure(measured.fault)
  return measured
}

/**
 * Waits until other programs use little of the machine for three seconds, or about two minutes have passed.
 */
async function waitForQuiet(): Promise<void> {
  const deadlineMs = performance.now() + longestWaitMs
  for (;;) {
    const othersShare = watchOthers()
    await delay(sampleMs)
    if (othersShare() <= maxOthersShare || performance.now() > deadlineMs) return
  }
}
