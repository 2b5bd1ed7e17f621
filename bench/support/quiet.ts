import { setTimeout as delay } from 'node:timers/promises'
import { BenchmarkFailure } from './failure.ts'
import { watchOthers } from './machine-cpu.ts'
import { say } from './say.ts'
import { percent } from './table.ts'

/** Above it, the other programs of the machine are what is measured. */
const maxOthersShare = 0.1
const tries = 4
const sampleMs = 3_000
const longestWaitMs = 120_000

/** A run, with what is wrong with it: nothing as a rule. */
export type Tried<T> = T & { othersShare: number; fault: string | undefined }

/**
 * Runs that other programs of the machine took part in are made again when it is quiet, whatever came of them.
 * Fails where that doesn't come, and with the fault of a run that nobody disturbed.
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

/** Until others use little of the machine for three seconds; no longer than two minutes. */
async function waitForQuiet(): Promise<void> {
  const deadlineMs = performance.now() + longestWaitMs
  for (;;) {
    const othersShare = watchOthers()
    await delay(sampleMs)
    if (othersShare() <= maxOthersShare || performance.now() > deadlineMs) return
  }
}
