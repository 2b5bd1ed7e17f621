import type { LogKind } from './log-record.ts'

export const groupings = ['all', 'destination', 'status', 'dead'] as const

/** How counts are grouped. */
export type Grouping = {
  /** The length of a step, in milliseconds. Steps begin at multiples of it. */
  readonly stepMs: number
  /**
   * `status`: by the status of answers, or by the outcome of requests without an answer. `all`: all counts
   * are in one group. `dead`: dead letters by their destination and reason (`readDeadKey`).
   */
  readonly by: (typeof groupings)[number]
  /** The most groups of the result. */
  readonly top: number
}

/** The counts of one group. Each list has a number for each step. */
export type GroupCounts = {
  readonly key: string
  /** Requests that were accepted, and that were not. */
  readonly succeeded: readonly number[]
  readonly failed: readonly number[]
  /** Deliveries that became dead letters. */
  readonly dead: readonly number[]
}

/** The groups with most failed requests and dead letters, and then with most requests. */
export type Groups = {
  /** The start of the first step, in epoch milliseconds. */
  readonly fromMs: number
  readonly steps: number
  readonly groups: readonly GroupCounts[]
  /** The number of groups that are left out. */
  readonly others: number
}

type Range = { readonly fromMs: number; readonly toMs: number }

/** The most steps of a result. */
export const mostSteps = 1_500
/** How many numbers each step of a group has: `succeeded`, `failed` and `dead`. */
const perStep = 3

/** Returns the steps that a time range has. */
export function stepsOf({ fromMs, toMs }: Range, stepMs: number): { fromMs: number; steps: number } {
  const first = Math.floor(fromMs / stepMs)
  return { fromMs: first * stepMs, steps: Math.max(0, Math.ceil(toMs / stepMs) - first) }
}

/** Adds up counts by group and step. */
export class GroupSums {
  readonly #grouping: Grouping
  readonly #from: { readonly fromMs: number; readonly steps: number }
  readonly #sums = new Map<string, Float64Array>()

  constructor(range: Range, grouping: Grouping) {
    this.#grouping = grouping
    this.#from = stepsOf(range, grouping.stepMs)
    if (this.#from.steps > mostSteps) throw new RangeError(`more than ${mostSteps} steps`)
  }

  add(
    key: string,
    { atMs, kind, isDelivered, count }: { atMs: number; kind: LogKind; isDelivered: boolean; count: number },
  ): void {
    const { fromMs, steps } = this.#from
    const step = Math.floor((atMs - fromMs) / this.#grouping.stepMs)
    const place = kind === 'attempted' ? (isDelivered ? 0 : 1) : kind === 'dead' ? 2 : undefined
    if (place === undefined || step < 0 || step >= steps) return
    let sums = this.#sums.get(key)
    if (sums === undefined) this.#sums.set(key, (sums = new Float64Array(perStep * steps)))
    const at = perStep * step + place
    sums[at] = (sums[at] ?? 0) + count
  }

  result(): Groups {
    const ranked = [...this.#sums]
      .map(([key, sums]) => ({
        key,
        sums,
        failures: totalOf(sums, 1) + totalOf(sums, 2),
        all: totalOf(sums, 0),
      }))
      .toSorted((a, b) => b.failures - a.failures || b.all - a.all || (a.key < b.key ? -1 : 1))
    const groups = ranked.slice(0, this.#grouping.top).map(({ key, sums }) => ({
      key,
      succeeded: each(sums, 0),
      failed: each(sums, 1),
      dead: each(sums, 2),
    }))
    return { ...this.#from, groups, others: ranked.length - groups.length }
  }
}

function each(sums: Float64Array, place: number): number[] {
  return Array.from({ length: sums.length / perStep }, (_, step) => sums[perStep * step + place] ?? 0)
}

function totalOf(sums: Float64Array, place: number): number {
  return each(sums, place).reduce((total, one) => total + one, 0)
}

/**
 * Returns the group of a record. `undefined`: it belongs to no group, because it says nothing about a status.
 */
export function groupOf(
  {
    kind,
    destination,
    status,
    outcome,
    reason,
  }: { kind: string; destination: string; status: number; outcome: string; reason: string },
  by: Grouping['by'],
): string | undefined {
  if (by === 'all') return ''
  if (by === 'destination') return destination
  if (by === 'dead') return kind === 'dead' ? JSON.stringify([destination, reason]) : undefined
  if (kind !== 'attempted') return undefined
  return status > 0 ? String(status) : outcome
}

/** Returns the destination and the reason of a group of dead letters. */
export function readDeadKey(key: string): { readonly destination: string; readonly reason: string } {
  const read: unknown = JSON.parse(key)
  const [destination, reason]: readonly unknown[] = Array.isArray(read) ? read : []
  return { destination: String(destination), reason: String(reason) }
}
