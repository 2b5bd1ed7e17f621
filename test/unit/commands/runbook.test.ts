import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { listRunbooks, showRunbook } from '../../../src/commands/runbook-command.ts'
import { runbooks } from '../../support/runbooks.ts'

const root = resolve(import.meta.dirname, '../../..')

test('each alert has a runbook under its own name, and names the command that prints it', () => {
  for (const { alert, annotations } of alerts()) {
    const shown = showRunbook(alert).join('\n')
    expect(shown).toContain(`\`${alert}\``)
    const [, , name = ''] = annotations.runbook.split(' ')
    expect(annotations.runbook).toBe(`sluice runbook ${name}`)
    expect(showRunbook(name).join('\n')).toBe(shown)
  }
})

test('all runbooks are listed, with their titles and alerts', () => {
  const listed = listRunbooks().join('\n')
  for (const file of runbooks) expect(listed).toContain(file.replace(/^.*\/(.*)\.md$/, '$1'))
  for (const { alert } of alerts()) expect(listed).toContain(alert)
  expect(listed).toMatch(/^lag +\w/m)
})

test('no runbook shows a link, which a terminal could not follow', () => {
  for (const file of runbooks) expect(showRunbook(file).join('\n')).not.toMatch(/\]\(/)
})

test('the links of a runbook become commands', () => {
  expect(showRunbook('retries-overdue').join('\n')).toContain('`sluice runbook restore`')
  expect(showRunbook('variables').join('\n')).toContain('export NAMESPACE=')
})

test('a name that is nearly one is refused with the one that was meant', () => {
  const { status, stderr } = spawnSync(
    process.execPath,
    [join(root, 'src/main.ts'), 'runbook', 'SluiceLagGrow'],
    { encoding: 'utf8' },
  )
  expect(stderr).toBe(
    'sluice: there is no runbook SluiceLagGrow; did you mean `sluice runbook SluiceLagGrows`?\n',
  )
  expect(status).toBe(2)
})

type Alert = { readonly alert: string; readonly annotations: { readonly runbook: string } }

function alerts(): Alert[] {
  const files = ['alerts', 'slo'].map((name) => join(root, `deploy/prometheus/sluice-${name}.rules.yaml`))
  return files.flatMap((file) => {
    const { groups }: { groups: { rules: (Alert | { alert: undefined })[] }[] } = parse(
      readFileSync(file, 'utf8'),
    )
    return groups.flatMap(({ rules }) => rules.filter((rule) => rule.alert !== undefined))
  })
}
