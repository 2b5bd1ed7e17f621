import { now } from '../data/clock.ts'
import { fromNow, localTime } from '../data/format.ts'

/** A local time. Its title has the same time in UTC, and how far it is from now. */
export function Time({ at, hasMillis = false }: { at: string | null | undefined; hasMillis?: boolean }) {
  if (at === null || at === undefined) return <span class="quiet">—</span>
  return (
    <time dateTime={at} title={`${utcOf(at)} (${fromNow(at, now.value)})`}>
      {localTime(at, now.value, { hasMillis })}
    </time>
  )
}

/** How far a time is from now: `4 min ago`. Its title has the time in UTC. */
export function Ago({ at }: { at: string | null | undefined }) {
  if (at === null || at === undefined) return <span class="quiet">—</span>
  return (
    <time dateTime={at} title={utcOf(at)}>
      {fromNow(at, now.value)}
    </time>
  )
}

function utcOf(at: string): string {
  const time = new Date(at)
  return Number.isNaN(time.getTime()) ? at : `${time.toISOString().replace('T', ' ').replace('Z', '')} UTC`
}
