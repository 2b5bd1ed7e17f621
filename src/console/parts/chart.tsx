import { useEffect, useRef } from 'preact/hooks'
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

const heightPx = 150

/** A chart over time. The table below it has the same figures for people who can't see it. */
export function Chart({ title, times, lines, write }: Props) {
  const place = useRef<HTMLDivElement>(null)
  const chosen = theme.value
  useEffect(() => {
    const box = place.current
    if (box === null) return
    const plot = new uPlot(
      optionsOf({ title, times, lines, write }, box.clientWidth),
      [[...times], ...lines.map(({ values }) => [...values])],
      box,
    )
    const resized = new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: heightPx }))
    resized.observe(box)
    return () => {
      resized.disconnect()
      plot.destroy()
    }
  }, [times, lines, chosen])
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
      <div ref={place} role="img" aria-label={summaryOf({ title, times, lines, write })} />
    </figure>
  )
}

function summaryOf({ title, lines, write }: Props): string {
  const last = lines.map(({ name, values }) => {
    const value = values.at(-1)
    return `${name} ${value === null || value === undefined ? 'unknown' : write(value)}`
  })
  return `${title}. At the end: ${last.join(', ')}`
}

function optionsOf({ lines, write }: Props, width: number): uPlot.Options {
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
    legend: { show: false },
    cursor: { y: false, points: { size: 5 } },
    scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } },
    axes: [
      {
        ...axis,
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
        points: { show: false },
      })),
    ],
  }
}
