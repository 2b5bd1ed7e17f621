import type { MinuteCount, MinutePercentiles } from './log-query.ts'
import type { LogKind } from './log-record.ts'

/**
 * The summary of a minute: the numbers of successful and of failed attempts, the number of events of each
 * other kind, and the percentiles of the attempts' durations.
 */
export type LogMinute = Record<'minuteMs' | 'succeeded' | 'failed' | 'p50Ms' | 'p95Ms' | 'p99Ms', number> &
  Record<Exclude<LogKind, 'attempted'>, number>

/**
 * Combines counts and percentiles into summaries of minutes, in the order of time. Minutes without records
 * are left out.
 */
export function minutesOf(
  counts: readonly MinuteCount[],
  durations: readonly MinutePercentiles[],
): LogMinute[] {
  const minutes = new Map<number, LogMinute>()
  const minuteAt = (minuteMs: number): LogMinute => {
    const minute = minutes.get(minuteMs) ?? { ...emptyMinute, minuteMs }
    minutes.set(minuteMs, minute)
    return minute
  }
  for (const { minuteMs, kind, verdict, count } of counts) {
    const minute = minuteAt(minuteMs)
    if (kind !== 'attempted') minute[kind] += count
    else if (verdict === 'delivered') minute.succeeded += count
    else minute.failed += count
  }
  for (const { minuteMs, p50Ms, p95Ms, p99Ms } of durations)
    Object.assign(minuteAt(minuteMs), { p50Ms, p95Ms, p99Ms })
  return [...minutes.values()].toSorted((a, b) => a.minuteMs - b.minuteMs)
}

const emptyMinute: LogMinute = {
  minuteMs: 0,
  succeeded: 0,
  failed: 0,
  parked: 0,
  delivered: 0,
  dead: 0,
  superseded: 0,
  suppressed: 0,
  omitted: 0,
  filtered: 0,
  p50Ms: 0,
  p95Ms: 0,
  p99Ms: 0,
}
