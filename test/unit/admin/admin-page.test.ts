import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { problems } from '../../../src/admin/problem.ts'
import { adminRoutes } from '../../../src/admin/routes.ts'
import { auditActions } from '../../../src/replay/job.ts'

// docs/admin-api.md is written by hand, so nothing else would notice what it lacks.
const page = readFileSync(resolve(import.meta.dirname, '../../../docs/admin-api.md'), 'utf8')
const rows = page.split('\n').filter((line) => line.startsWith('| '))

test('the page has a row for each call of the admin API, with its right', () => {
  for (const { method, path, right } of adminRoutes) {
    const row = rows.find((line) => line.includes(`\`${method}`) && line.includes(`${path}\``))
    // The row below that of a path has its other methods.
    const below = rows.find((line) => line.includes(`\`${method}`) && line.includes('of it'))
    expect(row ?? below).toContain(`\`${right}\``)
  }
})

test('the page has a row for each problem, with its status', () => {
  for (const [code, [status]] of Object.entries(problems)) {
    const type = `\`/problems/${code.replaceAll('_', '-')}\``
    const row = rows.find((line) => line.includes(type))
    expect([type, row?.split('|')[1]?.trim()]).toEqual([type, String(status)])
  }
})

test('the page names each action of the audit trail', () => {
  for (const action of auditActions) expect(page).toContain(`\`${action}\``)
})
