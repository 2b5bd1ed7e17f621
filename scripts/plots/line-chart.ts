/** Charts of numbers over time as SVG, for pages of the docs. */

export type Line = {
  name: string
  color: string
  /** The points in order of time. The line has a gap at an `undefined` value. */
  points: readonly (readonly [x: number, y: number | undefined])[]
  /** `true` if the line goes from value to value in steps, such as a number of pods. */
  isStepped?: boolean
}

export type Chart = {
  title: string
  lines: readonly Line[]
  /** Formats a value for the labels of the axis. */
  unit?: (value: number) => string
  /** A value that the axis reaches even if all values are lower. */
  top?: number
}

export type Band = { name: string; color: string; from: number; until: number }

export type Page = {
  charts: readonly Chart[]
  columns?: number
  from: number
  until: number
  /** The marks of the time axis. */
  ticks: readonly { at: number; name: string }[]
  /** Periods that are shaded in each chart. */
  bands?: readonly Band[]
  /** Moments with a vertical line in each chart. */
  moments?: readonly { at: number; name: string }[]
  /** The width of one chart, in pixels. */
  width?: number
  /** The height of one chart, in pixels. */
  height?: number
  /** A line of text below all charts. */
  note?: string
}

export const font = 'font-family="system-ui, sans-serif"'
const room = { left: 56, right: 12, top: 30, bottom: 24 }
const legendHeight = 14
/** Room at the right edge for the name of the last mark of a time axis. */
const margin = 14
const noteHeight = 24

/** Draws all charts in rows, as one picture. A white background makes it legible on any page. */
export function drawPage(page: Page): string {
  const { charts, columns = 1, width = 880, height = 170, note } = page
  const rows: Chart[][] = []
  for (let start = 0; start < charts.length; start += columns) rows.push(charts.slice(start, start + columns))
  let y = 0
  const drawn = rows.map((row) => {
    const legends = Math.max(...row.map((chart) => legendRows(chart, width).length))
    const top = y
    y += height + legends * legendHeight
    return row
      .map((chart, column) => drawChart(chart, page, { x: column * width, y: top, width, height }))
      .join('')
  })
  const total = { width: columns * width + margin, height: y + (note === undefined ? 8 : noteHeight) }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${total.width} ${total.height}" ${font} font-size="11" fill="#374151">`,
    `<rect width="${total.width}" height="${total.height}" fill="#ffffff"/>`,
    ...drawn,
    ...(note === undefined ? [] : [svgText({ x: room.left, y: total.height - 9, anchor: 'start' }, note)]),
    '</svg>\n',
  ].join('\n')
}

type Box = { x: number; y: number; width: number; height: number }

function drawChart(chart: Chart, page: Page, { x, y, width, height }: Box): string {
  const { from, until, ticks } = page
  const { title, lines, unit = String } = chart
  const inner = {
    left: x + room.left,
    right: x + width - room.right,
    top: y + room.top,
    bottom: y + height - room.bottom,
  }
  const marks = marksOf(chart)
  const most = marks.at(-1) ?? 1
  const xOf = (at: number): number => inner.left + ((at - from) / (until - from)) * (inner.right - inner.left)
  const yOf = (value: number): number => inner.bottom - (value / most) * (inner.bottom - inner.top)
  return [
    svgText({ x: inner.left, y: y + 18, anchor: 'start', isBold: true }, title),
    ...backgroundOf(page, inner, xOf),
    ...marks.map((mark) => {
      const at = round(yOf(mark))
      return `<path d="M${inner.left} ${at}H${inner.right}" stroke="#e5e7eb"/>${svgText({ x: inner.left - 6, y: at + 4, anchor: 'end' }, unit(mark))}`
    }),
    ...ticks.map(({ at, name }) =>
      svgText({ x: round(xOf(at)), y: inner.bottom + 15, anchor: 'middle' }, name),
    ),
    ...lines.map((line) => {
      const d = pathOf(line, xOf, yOf)
      return d === '' ? '' : `<path d="${d}" fill="none" stroke="${line.color}" stroke-width="1.5"/>`
    }),
    ...legendOf(chart, { x: inner.left, y: inner.bottom + 30, width }),
  ].join('\n')
}

type Inner = { left: number; right: number; top: number; bottom: number }

/** Draws bands and moments, each with its name above the chart. */
function backgroundOf(
  { bands = [], moments = [] }: Page,
  { top, bottom }: Inner,
  xOf: (at: number) => number,
): string[] {
  const label = (x: number, name: string) =>
    `<text x="${round(x)}" y="${top - 2}" text-anchor="middle" font-size="8">${escaped(name)}</text>`
  return [
    ...bands.map(({ name, color, from, until }) => {
      const [left, right] = [round(xOf(from)), round(xOf(until))]
      const area = `M${left} ${top}H${right}V${bottom}H${left}Z`
      return `<path d="${area}" fill="${color}" fill-opacity="0.15"/>${label((left + right) / 2, name)}`
    }),
    ...moments.map(
      ({ at, name }) =>
        `<path d="M${round(xOf(at))} ${top}V${bottom}" stroke="#2563eb" stroke-dasharray="3 2"/>${label(xOf(at), name)}`,
    ),
  ]
}

function pathOf(
  { points, isStepped = false }: Line,
  xOf: (at: number) => number,
  yOf: (value: number) => number,
): string {
  const places = points.map(([at, value]) => ({
    x: round(xOf(at)),
    y: value === undefined ? undefined : round(yOf(value)),
  }))
  // Steps relative to the point before need fewer characters.
  let at: { x: number; y: number } | undefined
  const parts = places.map(({ x, y }, index) => {
    if (y === undefined) {
      at = undefined
      return ''
    }
    const isBetween = places[index - 1]?.y === y && places[index + 1]?.y === y
    if (at !== undefined && isBetween) return ''
    const step = at === undefined ? undefined : `${round(x - at.x)} ${round(y - at.y)}`
    at = { x, y }
    if (step === undefined) return `M${x} ${y}`
    return isStepped ? `H${x}V${y}` : `l${step}`
  })
  return parts.join('')
}

/** Returns the marks of the value axis: 0 and some round numbers. The last one is at or above all values. */
function marksOf({ lines, top = 0 }: Chart): number[] {
  const values = lines.flatMap(({ points }) => points.map(([, value]) => value ?? 0))
  const most = Math.max(top, ...values)
  if (most <= 0) return [0, 1]
  const rough = most / 3
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 5].find((one) => one * power >= rough) ?? 10) * power
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, index) =>
    Number((index * step).toPrecision(6)),
  )
}

type Entry = { name: string; color: string; x: number }

/** Arranges the names of the lines in rows, as many in a row as fit. */
function legendRows({ lines }: Chart, width: number): Entry[][] {
  const rows: Entry[][] = [[]]
  let x = 0
  for (const { name, color } of lines) {
    const needed = 24 + name.length * 6.6
    if (x > 0 && x + needed > width - room.left - room.right) {
      rows.push([])
      x = 0
    }
    rows.at(-1)?.push({ name, color, x })
    x += needed
  }
  return rows
}

function legendOf(chart: Chart, { x, y, width }: { x: number; y: number; width: number }): string[] {
  return legendRows(chart, width).flatMap((row, place) =>
    row.map((entry) => {
      const [left, baseline] = [x + entry.x, y + place * legendHeight]
      return `<rect x="${left}" y="${baseline - 8}" width="10" height="8" fill="${entry.color}"/>${svgText({ x: left + 14, y: baseline, anchor: 'start' }, entry.name)}`
    }),
  )
}

/** Returns an SVG text at a place. Special characters are escaped. */
export function svgText(
  { x, y, anchor, isBold = false }: { x: number; y: number; anchor: string; isBold?: boolean },
  said: string,
): string {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}"${isBold ? ' font-weight="600"' : ''}>${escaped(said)}</text>`
}

function escaped(said: string): string {
  return said.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

/** Returns a number in a short form: 12000 as `12k`, 3400000 as `3.4M`. */
export function short(value: number): string {
  if (Math.abs(value) >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`
  if (Math.abs(value) >= 1e3) return `${Number((value / 1e3).toPrecision(3))}k`
  return String(Number(value.toPrecision(3)))
}
