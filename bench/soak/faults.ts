import { destinationCount, firstPlainDestination } from './fleet.ts'

export type Fault =
  | { kind: 'restart'; destinations: readonly number[] }
  | { kind: 'turn off' }
  | { kind: 'turn on' }
  | { kind: 'change secret' }

/** A fault and its time. `atS` is in seconds from the start of the quarter. */
export type TimedFault = { atS: number; fault: Fault }

const restartEveryS = 10
const editRoundS = 100
/**
 * The least length of a quarter with a restart of all receivers. In a shorter quarter, the worker would not
 * have recovered from the restart before the next one.
 */
const longQuarterS = 120

/**
 * Returns the faults of a quarter of the soak, in order. Each quarter has the same faults at the same times,
 * so that quarters can be compared. Healthy receivers are restarted one by one, and in a long quarter once
 * all together. One destination is turned off and on again, and the secret of another is changed. A longer
 * quarter has more faults.
 */
export function faultsOfQuarter(quarterS: number): readonly TimedFault[] {
  const restarts = Math.ceil(quarterS / restartEveryS)
  const single = Array.from({ length: restarts }, (_, index) => ({
    atS: ((index + 0.5) / restarts) * quarterS,
    fault: restartOf([firstPlainDestination + (index % (destinationCount - firstPlainDestination))]),
  }))
  const all = { atS: quarterS / 2, fault: restartOf(allFrom(firstPlainDestination)) }
  const rounds = Math.ceil(quarterS / editRoundS)
  const roundS = quarterS / rounds
  const edits = Array.from({ length: rounds }, (_, round): TimedFault[] => [
    { atS: (round + 0.2) * roundS, fault: { kind: 'turn off' } },
    { atS: (round + 0.5) * roundS, fault: { kind: 'turn on' } },
    { atS: (round + 0.8) * roundS, fault: { kind: 'change secret' } },
  ]).flat()
  const faults = [...single, ...(quarterS < longQuarterS ? [] : [all]), ...edits]
  return faults.toSorted((a, b) => a.atS - b.atS)
}

/** Returns the number of faults that edit the catalog. */
export function editsIn(faults: readonly TimedFault[]): number {
  return faults.filter(({ fault }) => fault.kind !== 'restart').length
}

function restartOf(destinations: readonly number[]): Fault {
  return { kind: 'restart', destinations }
}

function allFrom(first: number): number[] {
  return Array.from({ length: destinationCount - first }, (_, index) => first + index)
}
