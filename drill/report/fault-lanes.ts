import { describeFault, type Happened } from '../play.ts'
import { type Fault, type Lane, lanes } from '../schedule.ts'
import { drawLegend, drawMarks, type Frame, type Marks, xOf } from './chart.ts'
import { clockOf, durationOf, escape } from './text.ts'

const rowPx = 26
const barPx = 14
const top = 30
/** The least width of a bar, so that a short fault is visible. */
const leastPx = 4

const titles: Readonly<Record<Lane, string>> = {
  kills: 'Workers killed',
  group: 'Workers stopped, moved',
  brokers: 'Brokers',
  gateway: 'Gateway',
  'kafka network': 'Network to Kafka',
  endpoints: 'Endpoints',
  operator: 'Operator',
}

export const faultColours = {
  killed: 'var(--killed)',
  stopped: 'var(--stopped)',
  planned: 'var(--planned)',
  network: 'var(--network)',
} as const

type Nature = keyof typeof faultColours

const natures: Readonly<Record<Nature, string>> = {
  killed: 'killed',
  stopped: 'stopped for a while',
  planned: 'planned',
  network: 'network',
}

const legend = (['killed', 'stopped', 'planned', 'network'] as const).map((nature) => ({
  name: natures[nature],
  colour: faultColours[nature],
}))

/** Returns the nature of a fault, which decides the colour of its bar. */
export function natureOf({ kind }: Fault): Nature {
  switch (kind) {
    case 'kill worker':
    case 'kill broker':
    case 'kill gateway':
      return 'killed'
    case 'freeze worker':
    case 'pause worker':
    case 'pause broker':
    case 'pause gateway':
      return 'stopped'
    case 'restart worker':
    case 'add worker':
    case 'restart broker':
    case 'restart gateway':
    case 'pause destination':
    case 'edit destination':
    case 'retry now':
      return 'planned'
    case 'trouble to Kafka':
    case 'trouble to an endpoint':
      return 'network'
  }
}

/** Returns a chart as SVG with a bar for each fault, from its beginning to its end. Each lane has one row. */
export function drawFaults(
  frame: Frame,
  { happened, startedMs, marks }: { happened: readonly Happened[]; startedMs: number; marks: Marks },
): string {
  const height = top + lanes.length * rowPx + 4
  const right = frame.width - frame.right
  const rows = lanes.flatMap((lane, index) => {
    const y = top + index * rowPx
    return [
      `<line class="grid" x1="${frame.left}" x2="${right}" y1="${y + rowPx / 2}" y2="${y + rowPx / 2}"/>`,
      `<text class="row" x="${frame.left - 8}" y="${y + rowPx / 2 + 4}" text-anchor="end">${escape(titles[lane])}</text>`,
      ...happened
        .filter((one) => one.lane === lane)
        .map((one) => drawBar(frame, one, startedMs, y + (rowPx - barPx) / 2)),
    ]
  })
  return [
    `<svg class="chart" viewBox="0 0 ${frame.width} ${height}" role="img" aria-label="Faults">`,
    `<text class="title" x="${frame.left}" y="16">Faults <tspan class="unit">from when they began until all was back</tspan></text>`,
    drawLegend(legend, right),
    drawMarks(frame, marks, top, height - 4),
    ...rows,
    '</svg>',
  ].join('\n')
}

function drawBar(frame: Frame, { fault, fromMs, toMs }: Happened, startedMs: number, y: number): string {
  const from = xOf(frame, fromMs - startedMs)
  const width = Math.max(leastPx, xOf(frame, toMs - startedMs) - from)
  const told = `${clockOf(fromMs - startedMs)} ${describeFault(fault)}, back after ${durationOf(toMs - fromMs)}`
  return `<rect x="${from.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${barPx}" rx="3" fill="${faultColours[natureOf(fault)]}" fill-opacity="0.85"><title>${escape(told)}</title></rect>`
}
