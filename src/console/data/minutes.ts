import type { LogMinute } from './types.ts'

export const minuteMs = 60_000

/** A range of time, with the counts of its minutes. Minutes without requests are left out. */
export type CountedRange = {
  readonly from: string
  readonly to: string
  readonly minutes: readonly LogMinute[]
}

/**
 * Returns how long requests took in the slowest of some minutes, in milliseconds. `undefined`: there was
 * none.
 */
export function latencyOf(minutes: readonly LogMinute[]): NonNullable<LogMinute['durationMs']> | undefined {
  const known = minutes.flatMap(({ durationMs }) => durationMs ?? [])
  if (known.length === 0) return undefined
  const most = (of: (one: (typeof known)[number]) => number): number => Math.max(...known.map(of))
  return { p50: most(({ p50 }) => p50), p95: most(({ p95 }) => p95), p99: most(({ p99 }) => p99) }
}

/** Returns the minutes of a range, in epoch milliseconds, also those without requests. */
export function minutesIn({ from, to }: Pick<CountedRange, 'from' | 'to'>): readonly number[] {
  const times: number[] = []
  const first = Math.ceil(Date.parse(from) / minuteMs) * minuteMs
  for (let at = first; at < Date.parse(to); at += minuteMs) times.push(at)
  return times
}

/** Returns a value for each of some minutes. `otherwise`: that of minutes without requests. */
export function valuesAt(
  times: readonly number[],
  minutes: readonly LogMinute[],
  of: (minute: LogMinute) => number | null,
  otherwise: number | null,
): readonly (number | null)[] {
  const byTime = new Map(minutes.map((minute) => [Date.parse(minute.minute), minute]))
  return times.map((at) => {
    const minute = byTime.get(at)
    return minute === undefined ? otherwise : of(minute)
  })
}
