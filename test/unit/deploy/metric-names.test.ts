import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { metricsTable } from '../../../scripts/metrics-table.ts'

const deploy = resolve(import.meta.dirname, '../../../deploy')
const files = globSync(['prometheus/*.yaml', 'grafana/dashboards/*.json', 'helm/sluice/templates/*'], {
  cwd: deploy,
})

test('every metric that a rule, a dashboard or the chart asks for is one that Sluice has', async () => {
  const known = await metricsTable()
  const asked = files.flatMap((file) => {
    const text = readFileSync(join(deploy, file), 'utf8')
    // A rule in the file itself defines the names of the series that it records.
    const recorded = new Set([...text.matchAll(/record: (sluice\w+)/g)].map(([, name]) => name))
    return [...text.matchAll(/\bsluice_[a-z0-9_]+/g)].flatMap(([name]) =>
      recorded.has(name) || name.startsWith('sluice_scaling_')
        ? []
        : [name.replace(/_(bucket|sum|count)$/, '')],
    )
  })
  expect(asked.length).toBeGreaterThan(20)
  expect(asked.filter((name) => !known.has(name))).toEqual([])
})
