import { type Board, colorOf, type Panel } from '../dashboard-queries.ts'
import { type Chart, drawPage, type Line, short } from './line-chart.ts'

type Series = { labels: Record<string, string>; points: readonly (readonly [atS: number, value: number])[] }

const colors = ['#2563eb', '#d97706', '#7c3aed', '#0891b2', '#be185d', '#65a30d', '#4b5563', '#a16207']
const fixed = { green: '#059669', red: '#dc2626' }
/** The largest number of lines in a chart. More lines couldn't be distinguished. */
const mostLines = colors.length
const columns = 3
const width = 420
const marks = 4

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

/**
 * Draws a dashboard with the values that `range` returns for its queries. The picture has the content of
 * Grafana's dashboard, but another layout. Times are epoch seconds.
 */
export async function drawBoard(
  board: Board,
  range: (expr: string) => Promise<readonly Series[]>,
  { from, until }: { from: number; until: number },
): Promise<Drawn> {
  const charts: Chart[] = []
  for (const panel of drawnPanels(board)) charts.push(await chartOf(panel, range))
  const empty = charts.filter(({ lines }) => lines.every(({ points }) => points.length === 0))
  const svg = drawPage({
    charts,
    columns,
    width,
    from,
    until,
    ticks: Array.from({ length: marks + 1 }, (_, index) => ({
      at: from + (index / marks) * (until - from),
      name: `${Math.round(((index / marks) * (until - from)) / 6) / 10} min`,
    })),
    note: `Sluice: ${board.title}. A drawing, not Grafana: what a Prometheus answers to the queries of this dashboard that scraped a gateway and a worker with faults (test/fault/prometheus.test.ts).`,
  })
  return { svg, empty: empty.map(({ title }) => title) }
}

async function chartOf(
  { title, unit, max, queries }: Panel,
  range: (expr: string) => Promise<readonly Series[]>,
): Promise<Chart> {
  const lines: Omit<Line, 'color'>[] = []
  for (const { legend, expr } of queries)
    for (const { labels, points } of await range(expr)) {
      const numbers = points.filter(([, value]) => Number.isFinite(value))
      if (numbers.length > 0) lines.push({ name: named(legend, labels), points: numbers })
    }
  return {
    title,
    unit: units[unit],
    ...(max !== undefined && { top: max }),
    lines: lines.slice(0, mostLines).map((line, index) => {
      const color = colorOf(line.name)
      return { ...line, color: (color && fixed[color]) ?? colors[index] ?? '#374151' }
    }),
  }
}

/** Returns the name of a line: its legend with the values of the labels, as Grafana fills them in. */
function named(legend: string, labels: Record<string, string>): string {
  return legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => labels[label] ?? '').trim() || 'all'
}

const units: Record<Panel['unit'], (value: number) => string> = {
  cps: (value) => `${short(value)}/s`,
  s: (value) => (value > 0 && value < 1 ? `${short(value * 1_000)} ms` : `${short(value)} s`),
  short,
  bytes: (value) => `${short(value / 2 ** 20)} MiB`,
  percentunit: (value) => `${short(value * 100)} %`,
}
