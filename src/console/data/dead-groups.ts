import type { DeadLetterGroup } from './types.ts'

/** The dead letters of one destination, by reason. */
export type DeadDestination = {
  readonly destination: string | null
  readonly count: number
  readonly reasons: readonly DeadLetterGroup[]
}

/** Puts the groups of one destination together: the destination with most dead letters comes first. */
export function byDestination(groups: readonly DeadLetterGroup[]): readonly DeadDestination[] {
  const found = Map.groupBy(groups, ({ destination }) => destination)
  return [...found]
    .map(([destination, reasons]) => ({
      destination,
      count: reasons.reduce((sum, one) => sum + one.count, 0),
      reasons: reasons.toSorted((one, other) => other.count - one.count),
    }))
    .toSorted((one, other) => other.count - one.count)
}
