import { font, svgText } from './line-chart.ts'

/** Bar charts as SVG, for pages of the docs. */

export type Bar = { name: string; color: string; value: number; label: string }

export type BarChart = { title: string; bars: readonly Bar[] }

const width = 880
const nameWidth = 230
const labelWidth = 110
const titleHeight = 30
const barHeight = 20
const bottom = 10

/** Draws all charts below each other in one picture. A white background makes it legible on any page. */
export function drawBars(charts: readonly BarChart[]): string {
  let y = 0
  const drawn = charts.flatMap((chart) => {
    const top = y
    y += titleHeight + chart.bars.length * barHeight + bottom
    return drawChart(chart, top)
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y}" ${font} font-size="11" fill="#374151">`,
    `<rect width="${width}" height="${y}" fill="#ffffff"/>`,
    ...drawn,
    '</svg>\n',
  ].join('\n')
}

function drawChart({ title, bars }: BarChart, top: number): string[] {
  const most = Math.max(...bars.map(({ value }) => value), 0)
  const room = width - nameWidth - labelWidth
  return [
    svgText({ x: 10, y: top + 20, anchor: 'start', isBold: true }, title),
    ...bars.flatMap(({ name, color, value, label }, index) => {
      const y = top + titleHeight + index * barHeight
      const length = most === 0 ? 0 : Math.round((value / most) * room)
      return [
        svgText({ x: nameWidth - 8, y: y + 12, anchor: 'end' }, name),
        `<rect x="${nameWidth}" y="${y + 2}" width="${length}" height="${barHeight - 6}" fill="${color}"/>`,
        svgText({ x: nameWidth + length + 6, y: y + 12, anchor: 'start' }, label),
      ]
    }),
  ]
}
