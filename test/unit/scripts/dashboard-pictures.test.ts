import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { boards } from '../../../scripts/dashboard-panels.ts'
import { drawnPanels, isDrawn } from '../../../scripts/plots/dashboard.ts'

const folder = resolve(import.meta.dirname, '../../../docs/dashboards')

test('each dashboard has a picture, of all the panels that it has now: else run `npm run draw:dashboards`', () => {
  const pictures = globSync('*.svg', { cwd: folder }).toSorted()
  expect(pictures).toEqual(
    boards
      .filter(isDrawn)
      .map(({ id }) => `${id}.svg`)
      .toSorted(),
  )
  for (const board of boards.filter(isDrawn)) {
    const { id } = board
    const svg = readFileSync(`${folder}/${id}.svg`, 'utf8')
    const drawn = [...svg.matchAll(/font-weight="600">([^<]*)</g)].map(([, title]) => title)
    expect(drawn, `panels of ${id}.svg`).toEqual(drawnPanels(board).map(({ title }) => title))
  }
})
