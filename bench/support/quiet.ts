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

/** A run with its fault, if it has one. */
export type Tried<T> = T & { othersShare: number; fault: string | undefined }

/**
 * Measures a run, and repeats it if other programs of the machine disturbed it, even if it had a fault. Fails
 * if all tries were disturbed. Fails with the fault of a run that wasn't disturbed.
 */
export async function measureInQuiet<T>(measure: () => Promise<Tried<T>>): Promise<Tried<T>> {
  for (let attempt = 1; ; attempt++) {
    await waitForQuiet()
    const measured = await measure()
    const { othersShare, fault } = measured
    if (othersShare <= maxOthersShare) return faultless(measured)
    const problem = `other programs used ${percent(othersShare)} of the machine${fault === undefined ? '' : ` (${fault})`}`
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
