import { useEffect, useMemo, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { localClock } from '../data/format.ts'
import { theme } from '../data/theme.ts'

export type Line = {
  readonly name: string
  /** The variable of styles.css that has the colour. */
  readonly colour: '--good' | '--bad' | '--accent' | '--line-2' | '--line-3'
  /** One value for each time. null: a gap. */
  readonly values: readonly (number | null)[]
}

type Props = {
  title: string
  /** Seconds since 1970. */
  times: readonly number[]
  lines: readonly Line[]
  /** Writes a value of the axis and of the legend. */
  write: (value: number) => string
}

/**
 * Leaves out the last time if it isn't over: what it has so far would look like a fall. It stays if nothing
 * came before it, so that the first request is seen at once.
 */
function withoutRunning({ times, lines }: Pick<Props, 'times' | 'lines'>): Pick<Props, 'times' | 'lines'> {
  const hasMore = lines.some(({ values }) => values.slice(0, -1).some((value) => (value ?? 0) > 0))
  if (!hasMore) return { times, lines }
  return {
    times: times.slice(0, -1),
    lines: lines.map((line) => ({ ...line, values: line.values.slice(0, -1) })),
  }
}

const heightPx = 150

/**
 * A chart over time, whose last time is now. The table below it has the same figures for people who can't see
 * it.
 */
export function Chart({ title, times, lines, write }: Props) {
  const place = useRef<HTMLDivElement>(null)
  const chosen = theme.value
  const shown = useMemo(() => withoutRunning({ times, lines }), [times, lines])
  useEffect(() => {
    const box = place.current
    if (box === null) return
    const plot = new uPlot(
      optionsOf({ lines, write }, box.clientWidth),
      [[...shown.times], ...shown.lines.map(({ values }) => [...values])],
      box,
    )
    const resized = new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: heightPx }))
    resized.observe(box)
    return () => {
      resized.disconnect()
      plot.destroy()
    }
  }, [shown, chosen])
  return (
    <figure class="chart">
      <figcaption>
        {title}
        <span class="legend">
          {lines.map(({ name, colour }) => (
            <span key={name} class="key" data-colour={colour}>
              {name}
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={place} role="img" aria-label={summaryOf({ title, lines: shown.lines, write })} />
    </figure>
  )
}

function summaryOf({ title, lines, write }: Omit<Props, 'times'>): string {
  const last = lines.map(({ name, values }) => {
    const value = values.at(-1)
    return `${name} ${value === null || value === undefined ? 'unknown' : write(value)}`
  })
  return `${title}. At the end: ${last.join(', ')}`
}

/** A value without neighbours makes no line, so it is drawn as a point. */
function pointsOf({ values }: Line): uPlot.Series.Points {
  const isGap = (place: number): boolean => (values[place] ?? null) === null
  const alone = [...values.keys()].filter((at) => !isGap(at) && isGap(at - 1) && isGap(at + 1))
  return { show: alone.length > 0, size: 5, filter: () => alone }
}

function optionsOf({ lines, write }: Pick<Props, 'lines' | 'write'>, width: number): uPlot.Options {
  const style = getComputedStyle(document.documentElement)
  const colour = (name: string): string => style.getPropertyValue(name).trim()
  const axis = {
    stroke: colour('--quiet'),
    grid: { stroke: colour('--border'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui, sans-serif',
  }
  return {
    width: Math.max(200, width),
    height: heightPx,
    padding: [8, 16, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 5 } },
    scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } },
    axes: [
      {
        ...axis,
        size: 26,
        values: (_, ticks) => ticks.map((tick) => localClock(new Date(tick * 1000)).slice(0, 5)),
      },
      { ...axis, size: 62, values: (_, ticks) => ticks.map((tick) => write(tick)) },
    ],
    series: [
      {},
      ...lines.map((line) => ({
        label: line.name,
        stroke: colour(line.colour),
        width: 1.5,
        points: pointsOf(line),
      })),
    ],
  }
}
