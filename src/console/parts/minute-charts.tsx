import { useMemo } from 'preact/hooks'
import { millis, shortCount } from '../data/format.ts'
import { type CountedRange, minutesIn, valuesAt } from '../data/minutes.ts'
import { Chart, type Line } from './chart.tsx'

/** The requests of each minute: those that were accepted, and those that failed. */
export function RequestChart({ from, to, minutes }: CountedRange) {
  const { times, lines } = useMemo(() => {
    const at = minutesIn({ from, to })
    const shown: readonly Line[] = [
      { name: 'accepted', colour: '--good', values: valuesAt(at, minutes, (one) => one.succeeded, 0) },
      { name: 'failed', colour: '--bad', values: valuesAt(at, minutes, (one) => one.failed, 0) },
    ]
    return { times: at.map(secondsOf), lines: shown }
  }, [from, to, minutes])
  return <Chart title="Requests a minute" times={times} lines={lines} write={shortCount} />
}

const shares = [
  { name: '50 %', share: 'p50', colour: '--accent' },
  { name: '95 %', share: 'p95', colour: '--line-2' },
  { name: '99 %', share: 'p99', colour: '--line-3' },
] as const

/** How long the requests of each minute took, by the share of them that was faster. */
export function LatencyChart({ from, to, minutes }: CountedRange) {
  const { times, lines } = useMemo(() => {
    const at = minutesIn({ from, to })
    const shown: readonly Line[] = shares.map(({ name, share, colour }) => ({
      name,
      colour,
      values: valuesAt(at, minutes, ({ durationMs }) => durationMs?.[share] ?? null, null),
    }))
    return { times: at.map(secondsOf), lines: shown }
  }, [from, to, minutes])
  return <Chart title="Latency" times={times} lines={lines} write={millis} />
}

function secondsOf(ms: number): number {
  return ms / 1000
}
