import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { boards } from '../../scripts/dashboard-panels.ts'
import { metricsTable, type TableMetric } from '../../scripts/metrics-table.ts'
import { configKeys } from '../../src/config/schema.ts'
import { namesIn, selectorsIn } from '../support/promql.ts'
import { linesOf, runbooks, variablesPage } from '../support/runbooks.ts'
import { promtoolHangsAfterMs, runTool } from './tools.ts'

const root = resolve(import.meta.dirname, '../..')
const found = (pattern: string): string[] => globSync(pattern, { cwd: root }).toSorted()
const read = (file: string): string => readFileSync(join(root, file), 'utf8')

type Rule = {
  record?: string
  alert?: string
  expr: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
}

const rules = found('deploy/prometheus/*.rules.yaml').flatMap((file) => {
  const { groups }: { groups: { rules: Rule[] }[] } = parse(read(file))
  return groups.flatMap((group) => group.rules)
})
const alerts = rules.filter(({ alert }) => alert !== undefined)
const promqlOf = (page: string): string[] => linesOf(page, 'promql')
const recorded = rules.flatMap(({ record }) => record ?? [])

let table: ReadonlyMap<string, TableMetric>

beforeAll(async () => {
  table = await metricsTable()
})

/** Returns the names of series in `expr` that neither the metrics table nor a recording rule has. */
function unknownIn(expr: string): string[] {
  return namesIn(expr).filter((name) => {
    if (recorded.includes(name)) return false
    const histogram = table.get(name.replace(/_(bucket|sum|count)$/, ''))
    return !table.has(name) && histogram?.type !== 'histogram'
  })
}

/**
 * Labels that a series may have although the metrics table doesn't list them. Prometheus, Kubernetes or a
 * rule adds these labels.
 */
const added = ['namespace', 'release', 'pod', 'instance', 'le']

function wrongLabelsIn(expr: string): string[] {
  return selectorsIn(expr).flatMap(({ name, labels }) => {
    const metric = table.get(name) ?? table.get(name.replace(/_(bucket|sum|count)$/, ''))
    if (metric === undefined) return []
    const known = new Set([...metric.labels, ...metric.destinationLabels, ...added])
    return labels.filter((label) => !known.has(label)).map((label) => `${name}{${label}}`)
  })
}

describe('the rules', () => {
  test('are there', () => {
    expect(alerts.length).toBeGreaterThan(30)
    expect(recorded.length).toBeGreaterThan(25)
  })

  test('name metrics and labels of the table only', () => {
    expect(rules.flatMap(({ expr }) => [...unknownIn(expr), ...wrongLabelsIn(expr)])).toEqual([])
  })

  test('each alert says how urgent it is, what it is about, and which page helps', () => {
    for (const { alert, labels, annotations } of alerts) {
      expect(['critical', 'warning'], `${alert}`).toContain(labels?.['severity'])
      expect(annotations?.['summary'], `${alert}`).toMatch(/\.$/)
      expect(annotations?.['description'], `${alert}`).toMatch(/\.$/)
      const runbook = runbookOf(annotations)
      expect(runbooks, `${alert}`).toContain(runbook)
      expect(read(runbook), `${alert}`).toContain(`\`${alert}\``)
    }
  })

  test('each alert fires in a test of its own, and none while all is well', () => {
    const tests = found('deploy/prometheus/tests/*.yaml').flatMap((file) => {
      const page: {
        tests: { name: string; promql_expr_test: { expr: string; exp_samples: unknown[] }[] }[]
      } = parse(read(file))
      return page.tests
    })
    const fired = tests
      .filter(({ promql_expr_test: [first] }) => first?.exp_samples.length === 1)
      .map(({ name }) => name)
    expect(fired.toSorted()).toEqual(alerts.map(({ alert = '' }) => alert).toSorted())
    const quiet = tests.filter(({ promql_expr_test: [first] }) => first?.exp_samples.length === 0)
    expect(quiet.length).toBeGreaterThan(0)
  })

  test.each(found('deploy/prometheus/tests/*.yaml'))(
    'promtool runs the tests of %s',
    { timeout: promtoolHangsAfterMs },
    async (file) => {
      expect(await runTool('promtool', ['test', 'rules', file])).toMatchObject({ isOk: true })
    },
  )
})

describe('the dashboards', () => {
  test('name metrics and labels of the table only, and have a panel for most metrics', () => {
    const exprs = boards.flatMap(({ panels }) =>
      panels.flatMap(({ queries }) => queries.map(({ expr }) => expr)),
    )
    expect(exprs.length).toBeGreaterThan(60)
    expect(exprs.flatMap((expr) => [...unknownIn(expr), ...wrongLabelsIn(expr)])).toEqual([])
    const shown = new Set(exprs.flatMap(namesIn).map((name) => name.replace(/_bucket$/, '')))
    const own = [...table.keys()].filter((name) => name.startsWith('sluice_'))
    expect(own.filter((name) => shown.has(name)).length / own.length).toBeGreaterThan(0.75)
  })
})

const sections = [
  'What it means',
  'How bad it is',
  'What to look at',
  'What to do',
  'How to know that it is over',
]
/** Returns the path of an alert's runbook. The alert names the command that prints it. */
function runbookOf(annotations: Readonly<Record<string, string>> | undefined): string {
  return (annotations?.['runbook'] ?? '').replace(/^sluice runbook (.+)$/, 'deploy/runbooks/$1.md')
}

/** The commands, apart from `sluice`, that runbooks may use. Operators have these commands. */
const tools = new Set([
  'kubectl',
  'curl',
  'openssl',
  'kafka-configs.sh',
  'kafka-consumer-groups.sh',
  'kafka-console-consumer.sh',
  'kafka-topics.sh',
])

describe('the runbooks', () => {
  test('each is of an alert, and has all of its sections', () => {
    const named = new Set(alerts.map(({ annotations }) => runbookOf(annotations)))
    expect(runbooks.filter((file) => !named.has(file))).toEqual([])
    for (const file of runbooks) {
      const titles = [...read(file).matchAll(/^## (.*)$/gm)].map(([, title]) => title)
      expect(titles, `sections of ${file}`).toEqual(sections)
    }
  })

  test('their queries name metrics and labels of the table only, and promtool reads them', async () => {
    const queries = runbooks.flatMap((file) => promqlOf(read(file)))
    expect(queries.length).toBeGreaterThan(60)
    const wrong = queries.flatMap((expr) => [...unknownIn(expr), ...wrongLabelsIn(expr)])
    expect(wrong).toEqual([])
    const folder = mkdtempSync(join(tmpdir(), 'runbooks-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'queries.yaml')
    const asRules = queries.map((expr, place) => ({ record: `query:${place}`, expr }))
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'runbooks', rules: asRules }] }))
    expect(await runTool('promtool', ['check', 'rules', file])).toMatchObject({ isOk: true })
  })

  // This test only asks each `sluice` command for its help. test/fault/runbooks.test.ts runs all commands of
  // the runbooks against a cluster.
  test('their commands exist', async () => {
    const lines = runbooks.flatMap((file) => linesOf(read(file), 'sh'))
    expect(lines.filter((line) => !tools.has(line.split(' ')[0] ?? ''))).toEqual([])
    const own = new Set(lines.flatMap((line) => line.split(' -- sluice ')[1] ?? []))
    expect(own.size).toBeGreaterThan(9)
    for (const command of own) {
      const words = command.split(' ')
      const isHelp = words.some((word) => ['--help', '--version'].includes(word))
      const args = [join(root, 'src/main.ts'), ...words, ...(isHelp ? [] : ['--help'])]
      expect((await runTool(process.execPath, args)).isOk, `runs: ${command}`).toBe(true)
    }
  })

  test('their commands say where they run, log in to Kafka, and use variables that are explained', () => {
    const explained = new Set([...read(variablesPage).matchAll(/\b([A-Z]+)=/g)].map(([, name]) => name))
    for (const file of runbooks) {
      const page = read(file)
      const lines = linesOf(page, 'sh')
      expect(page.includes(`](${basename(variablesPage)}#variables)`), `of ${file}`).toBe(lines.length > 0)
      for (const line of lines) {
        const [tool = ''] = line.split(' ')
        if (tool === 'kubectl') expect(line).toMatch(/^kubectl -n "\$NAMESPACE" /)
        if (tool.startsWith('kafka-'))
          expect(line).toMatch(
            / --bootstrap-server "\$BROKER" --(command-config|consumer\.config) "\$CLIENT" /,
          )
        const used = [...line.matchAll(/\$(\w+)/g)].map(([, name = '']) => name)
        expect(used.filter((name) => !explained.has(name) && !page.includes(`\`${name}\` is `))).toEqual([])
      }
    }
  })

  test('where messages can be sent again or looked up, they say how', () => {
    for (const name of ['dead-letters', 'endpoint-failing', 'retries-near-end']) {
      const page = read(`deploy/runbooks/${name}.md`)
      expect(page).toMatch(/ sluice replay dead-letters .*--dry-run$/m)
      expect(page).toMatch(/ sluice log search .*--failed/)
    }
  })

  test('what they link to and the settings that they name exist', () => {
    const keys = new Set(configKeys.map(({ name }) => name))
    for (const file of runbooks) {
      const page = read(file)
      const links = [...page.matchAll(/\]\(([\w-]+\.md)\)/g)].map(([, link = '']) => link)
      expect(
        links.filter((link) => !runbooks.some((one) => basename(one) === link)),
        `in ${file}`,
      ).toEqual([])
      const settings = [
        ...page.matchAll(/`((?:delivery|worker|gateway|kafka|registry|retry|state|metrics|attempts)\.\w+)`/g),
      ]
      expect(
        settings.map(([, name = '']) => name).filter((name) => !keys.has(name)),
        `in ${file}`,
      ).toEqual([])
    }
  })
})
