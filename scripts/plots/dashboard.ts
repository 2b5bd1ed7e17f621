import { type Board, colorOf, type Panel } from '../dashboard-queries.ts'
import { type Chart, drawPage, type Line, short } from './line-chart.ts'
import { shades, storyMinutes } from './story.ts'

type Series = { labels: Record<string, string>; points: readonly (readonly [atS: number, value: number])[] }

const colors = ['#2563eb', '#d97706', '#7c3aed', '#0891b2', '#be185d', '#65a30d', '#4b5563', '#a16207']
const shadesOf = {
  green: ['#059669', '#064e3b', '#6ee7b7'],
  red: ['#dc2626', '#7f1d1d', '#fca5a5'],
}
/** The largest number of lines in a chart. More lines couldn't be distinguished. */
const mostLines = colors.length
const columns = 3
const width = 420

export type Drawn = {
  svg: string
  /** The titles of panels that have no point at all. */
  empty: string[]
}

/** Returns false for a dashboard without a picture: what one destination shows depends on which one is chosen. */
export function isDrawn({ hasDestination }: Board): boolean {
  return hasDestination !== true
}

/** Returns the panels that a picture shows: those with lines. Grafana shows numbers and tables above them. */
export function drawnPanels({ panels }: Board): readonly Panel[] {
  return panels.filter(({ kind }) => kind === undefined)
}

/** The time that a picture shows. All times are epoch seconds. */
export type Shown = {
  readonly from: number
  readonly until: number
  /** The time between two values of a series, in seconds. */
  readonly stepS: number
  /** How long a minute of the story lasts, in seconds. */
  readonly minuteS: number
  /** What Grafana marks in all panels. */
  readonly moments: readonly { readonly at: number; readonly name: string }[]
}

/**
 * Draws a dashboard with the values that `range` returns for its queries. The picture has the content of
 * Grafana's dashboard, but another layout.
 */
export async function drawBoard(
  board: Board,
  range: (expr: string) => Promise<readonly Series[]>,
  { from, until, stepS, minuteS, moments }: Shown,
): Promise<Drawn> {
  const charts: Chart[] = []
  for (const panel of drawnPanels(board)) charts.push(await chartOf(panel, range, stepS))
  const empty = charts.filter(({ lines }) => lines.every(({ points }) => points.length === 0))
  const svg = drawPage({
    charts,
    columns,
    width,
    from,
    until,
    moments,
    bands: shades().map(({ name, color, fromMin, untilMin }) => ({
      name,
      color,
      from: from + fromMin * minuteS,
      until: from + untilMin * minuteS,
    })),
    ticks: Array.from({ length: storyMinutes + 1 }, (_, minute) => ({
      at: from + minute * minuteS,
      name: minute === storyMinutes ? `${minute} min` : String(minute),
    })),
    note: `Sluice: ${board.title}. A drawing, not Grafana: what a Prometheus answered to the queries of this dashboard while docs/dashboards.md was played (test/fault/prometheus.test.ts).`,
  })
  return { svg, empty: empty.map(({ title }) => title) }
}

async function chartOf(
  { title, unit, max, queries }: Panel,
  range: (expr: string) => Promise<readonly Series[]>,
  stepS: number,
): Promise<Chart> {
  const lines: Omit<Line, 'color'>[] = []
  for (const { legend, expr } of queries)
    for (const { labels, points } of await range(expr)) {
      const numbers = points.filter(([, value]) => Number.isFinite(value))
      if (numbers.length > 0) lines.push({ name: named(legend, labels), points: withGaps(numbers, stepS) })
    }
  const { divisor, format } = axisOf(unit, Math.max(...lines.map(most)))
  return {
    title,
    unit: format,
    ...(max !== undefined && { top: max / divisor }),
    lines: painted(highest(lines)).map((line) => ({
      ...line,
      points: line.points.map(([at, value]) => [at, value && value / divisor] as const),
    })),
  }
}

/** Gives each line a color: those of success and of failures a shade of green or red, as Grafana does. */
function painted(lines: readonly Omit<Line, 'color'>[]): Line[] {
  const used = { green: 0, red: 0 }
  return lines.map((line, index) => {
    const name = colorOf(line.name)
    const shade = name && shadesOf[name][used[name]++ % shadesOf[name].length]
    return { ...line, color: shade ?? colors[index] ?? '#374151' }
  })
}

/** Adds a point without a value where a series has ended for a while. */
function withGaps(
  points: readonly (readonly [atS: number, value: number])[],
  stepS: number,
): (readonly [atS: number, value: number | undefined])[] {
  return points.flatMap(([at, value], index) => {
    const before = points[index - 1]?.[0] ?? at
    return at - before > 1.5 * stepS
      ? [[at, undefined] as const, [at, value] as const]
      : [[at, value] as const]
  })
}

/** Returns as many lines as can be distinguished, in the given order: those that reach the highest values. */
function highest(lines: readonly Omit<Line, 'color'>[]): readonly Omit<Line, 'color'>[] {
  if (lines.length <= mostLines) return lines
  const kept = new Set(lines.toSorted((one, other) => most(other) - most(one)).slice(0, mostLines))
  return lines.filter((line) => kept.has(line))
}

function most({ points }: Pick<Line, 'points'>): number {
  return Math.max(...points.map(([, value]) => value ?? 0))
}

/** Returns the name of a line: its legend with the values of the labels, as Grafana fills them in. */
function named(legend: string, labels: Record<string, string>): string {
  return legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => labels[label] ?? '').trim() || 'all'
}

type Axis = {
  /** By how much values are divided. The marks of the axis are round in what is shown. */
  readonly divisor: number
  readonly format: (shown: number) => string
}

/** Returns how values of a unit are shown. Nobody reads a day in seconds. */
function axisOf(unit: Panel['unit'], highestValue: number): Axis {
  if (unit === 'bytes') return { divisor: 2 ** 20, format: (value) => `${short(value)} MiB` }
  if (unit === 's' && highestValue > 7_200) return { divisor: 3_600, format: (value) => `${short(value)} h` }
  if (unit === 's' && highestValue > 300) return { divisor: 60, format: (value) => `${short(value)} min` }
  return { divisor: 1, format: formats[unit] }
}

const formats: Record<Exclude<Panel['unit'], 'bytes'>, (value: number) => string> = {
  cps: (value) => `${short(value)}/s`,
  s: (value) => (value > 0 && value < 1 ? `${short(value * 1_000)} ms` : `${short(value)} s`),
  short,
  percentunit: (value) => `${short(value * 100)} %`,
}
