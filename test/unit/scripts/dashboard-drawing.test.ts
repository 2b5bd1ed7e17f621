import { describe, expect, test } from 'vitest'
import type { Board } from '../../../scripts/dashboard-queries.ts'
import { drawBoard } from '../../../scripts/plots/dashboard.ts'
import { svgFault } from '../../../scripts/svg.ts'

const board: Board = {
  id: 'one',
  title: 'one',
  about: '',
  panels: [{ title: 'Panel', about: '', unit: 'short', queries: [{ legend: '{{name}}', expr: 'x' }] }],
}
const shown = { from: 0, until: 70, stepS: 5, minuteS: 10, moments: [{ at: 40, name: 'catalog' }] }

type Points = (readonly [number, number])[]

async function draw(series: Record<string, Points>): Promise<string> {
  const all = Object.entries(series).map(([name, points]) => ({ labels: { name }, points }))
  return (await drawBoard(board, async () => all, shown)).svg
}

/** Returns the paths of lines, without those of axes, shades and marks. */
function lines(svg: string): string[] {
  return [...svg.matchAll(/<path d="([^"]*)" fill="none"/g)].map(([, d = '']) => d)
}

describe('the drawing of a dashboard', () => {
  test('has a gap where a series had no value', async () => {
    const svg = await draw({
      a: [
        [0, 1],
        [5, 2],
        [30, 1],
        [35, 2],
      ],
    })
    expect(lines(svg)[0]?.match(/M/g)).toHaveLength(2)
  })

  test('draws a flat part as one piece', async () => {
    const svg = await draw({ a: Array.from({ length: 10 }, (_, index) => [index * 5, 3] as const) })
    expect(lines(svg)[0]?.match(/[Ml]/g)).toEqual(['M', 'l'])
  })

  test('keeps the lines that reach the highest values, if there are too many', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `line-${index}`)
    const svg = await draw(Object.fromEntries(names.map((name, index) => [name, [[0, index]]])))
    expect(names.filter((name) => svg.includes(`>${name}<`))).toEqual(names.slice(4))
  })

  test.each([
    [90, ['0 s', '50 s', '100 s']],
    [650, ['0 min', '5 min', '10 min', '15 min']],
    [86_400, ['0 h', '10 h', '20 h', '30 h']],
  ])('shows %s seconds in a unit that people read', async (seconds, marks) => {
    const [panel] = board.panels
    const inSeconds: Board = { ...board, panels: panel === undefined ? [] : [{ ...panel, unit: 's' }] }
    const all = [{ labels: { name: 'a' }, points: [[0, seconds] as const] }]
    const { svg } = await drawBoard(inSeconds, async () => all, shown)
    expect([...svg.matchAll(/text-anchor="end">([^<]*)</g)].map(([, mark]) => mark)).toEqual(marks)
  })

  test('names the shades of the story and the marks', async () => {
    const svg = await draw({ a: [[0, 1]] })
    expect(svgFault(svg)).toBeUndefined()
    for (const name of ['crm slow', 'crm fails', 'catalog']) expect(svg).toContain(`>${name}</text>`)
  })
})
