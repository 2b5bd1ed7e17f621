import { clockOf, escape, shortNumber } from './text.ts'
import type { Point } from './series.ts'

/**
 * The horizontal dimensions that all charts of the page share. `width`, `left` and `right` are in pixels.
 * `lengthMs` is the time from the start of the drill to the right edge.
 */
export type Frame = { width: number; left: number; right: number; lengthMs: number }

/**
 * The times of the vertical lines behind all charts, in milliseconds from the start. `killed` are the times
 * of kills. `calmMs` is the time when all faults were over.
 */
export type Marks = { killed: readonly number[]; calmMs: number }

export type Line = {
  name: string
  colour: string
  points: readonly Point[]
  isFilled?: true
  isStepped?: true
}

export type Chart = {
  title: string
  /** The unit of the values, for example `ms`. */
  unit: string
  lines: readonly Line[]
  height: number
  isLogarithmic?: true
  marks: Marks
}

type Scale = { y: (value: number) => number; ticks: readonly number[] }

const top = 30
const bottom = 8

export function xOf({ width, left, right, lengthMs }: Frame, atMs: number): number {
  return left + (Math.max(0, Math.min(atMs, lengthMs)) / lengthMs) * (width - left - right)
}

/** Returns a line chart as SVG. */
export function drawChart(frame: Frame, chart: Chart): string {
  const { title, unit, lines, height, marks } = chart
  const scale = scaleOf(chart)
  const right = frame.width - frame.right
  const grid = scale.ticks.map(
    (tick) =>
      `<line class="grid" x1="${frame.left}" x2="${right}" y1="${round(scale.y(tick))}" y2="${round(scale.y(tick))}"/>` +
      `<text class="tick" x="${frame.left - 8}" y="${round(scale.y(tick) + 3.5)}" text-anchor="end">${shortNumber(tick)}</text>`,
  )
  return [
    `<svg class="chart" viewBox="0 0 ${frame.width} ${height}" role="img" aria-label="${escape(title)}">`,
    `<text class="title" x="${frame.left}" y="16">${escape(title)} <tspan class="unit">${escape(unit)}</tspan></text>`,
    drawLegend(lines, right),
    drawMarks(frame, marks, top, height - bottom),
    ...grid,
    ...lines.flatMap((line) => drawLine(frame, line, scale, height - bottom)),
    '</svg>',
  ].join('\n')
}

/** Returns the time axis of all charts as SVG. */
export function drawTimeAxis(frame: Frame): string {
  const ticks = timeTicks(frame.lengthMs).map(
    (atMs) =>
      `<text class="tick" x="${round(xOf(frame, atMs))}" y="14" text-anchor="middle">${clockOf(atMs)}</text>`,
  )
  return `<svg class="chart" viewBox="0 0 ${frame.width} 20" aria-hidden="true">${ticks.join('')}</svg>`
}

export function drawMarks(frame: Frame, { killed, calmMs }: Marks, from: number, to: number): string {
  const line = (name: string, atMs: number): string => {
    const x = round(xOf(frame, atMs))
    return `<line class="${name}" x1="${x}" x2="${x}" y1="${from}" y2="${to}"/>`
  }
  return [...killed.map((atMs) => line('mark', atMs)), line('end', calmMs)].join('')
}

const timeSteps = [10, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200].map((seconds) => seconds * 1_000)
const mostTimeTicks = 14

function timeTicks(lengthMs: number): number[] {
  const step = timeSteps.find((each) => lengthMs / each <= mostTimeTicks) ?? lengthMs
  return Array.from({ length: Math.floor(lengthMs / step) + 1 }, (_, index) => index * step)
}

/**
 * Returns the names with their colours as SVG. The legend is to the right of the title, and ends at `right`.
 */
export function drawLegend(items: readonly { name: string; colour: string }[], right: number): string {
  const widths = items.map(({ name }) => swatchPx + name.length * letterPx + gapPx)
  let x = right - widths.reduce((sum, width) => sum + width, 0) + gapPx
  return items
    .map(({ name, colour }, index) => {
      const at = x
      x += widths[index] ?? 0
      return `<rect x="${round(at)}" y="7" width="10" height="10" rx="3" fill="${colour}"/><text class="legend" x="${round(at + swatchPx)}" y="16">${escape(name)}</text>`
    })
    .join('')
}

/** The approximate mean width of a letter, because text can't be measured here. */
const letterPx = 6
const swatchPx = 15
const gapPx = 14

function drawLine(
  frame: Frame,
  { colour, points, isFilled, isStepped }: Line,
  { y }: Scale,
  floor: number,
): string[] {
  return pieces(points).flatMap((piece) => {
    const at = piece.map(({ atMs, value }) => [round(xOf(frame, atMs)), round(y(value))] as const)
    const [first] = at
    const last = at.at(-1)
    if (first === undefined || last === undefined) return []
    const path = at
      .map(([x, height], index) =>
        index === 0 ? `M${x},${height}` : `${isStepped ? `H${x}V` : `L${x},`}${height}`,
      )
      .join('')
    const area = `${path}L${last[0]},${floor}L${first[0]},${floor}Z`
    return [
      ...(isFilled ? [`<path d="${area}" fill="${colour}" opacity="0.14"/>`] : []),
      `<path class="line" d="${path}" stroke="${colour}"/>`,
    ]
  })
}

/** Splits a line at the points without a value, where the line is interrupted. */
function pieces(points: readonly Point[]): { atMs: number; value: number }[][] {
  const result: { atMs: number; value: number }[][] = [[]]
  for (const { atMs, value } of points) {
    if (value === undefined) result.push([])
    else result.at(-1)?.push({ atMs, value })
  }
  return result.filter(({ length }) => length > 0)
}

function scaleOf({ lines, height, isLogarithmic }: Chart): Scale {
  const values = lines.flatMap(({ points }) => points.flatMap(({ value }) => value ?? []))
  const most = Math.max(1, ...values)
  const spanPx = height - top - bottom
  if (isLogarithmic) {
    const least = Math.max(1, Math.min(...values.filter((value) => value > 0), most / 10))
    const low = Math.floor(Math.log10(least))
    const high = Math.max(low + 1, Math.ceil(Math.log10(most)))
    const ticks = Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index))
    const share = (value: number): number =>
      (Math.max(low, Math.log10(Math.max(value, 1e-9))) - low) / (high - low)
    return { ticks, y: (value) => top + (1 - share(value)) * spanPx }
  }
  const step = niceStep(most / Math.max(2, Math.floor(spanPx / 32)))
  const end = Math.ceil(most / step) * step
  const ticks = Array.from({ length: Math.round(end / step) + 1 }, (_, index) => index * step)
  return { ticks, y: (value) => top + (1 - value / end) * spanPx }
}

/** Returns the first of 1, 2, 5, 10, 20, 50 … that is at least `least`. */
function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)))
  const factor = [1, 2, 5, 10].find((each) => each * power >= least) ?? 10
  return factor * power
}

function round(pixels: number): number {
  return Number(pixels.toFixed(1))
}
