import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { only, type Resource } from './render.ts'
import { runTool, type Tools } from './tools.ts'

/** Returns a series of the namespace `sluice`, for promtool. */
export function told(name: string, labels: string, values: string) {
  return { series: `${name}{namespace="sluice",${labels}}`, values }
}

/** The time between two samples and between two evaluations, and alerts that are expected with their annotations. */
type Suite = { every?: string; alerts?: readonly object[] }

/**
 * Lets promtool compare the series that the rules of the chart record with the expected series. Returns the
 * differences as a text, which is empty if there are none.
 */
export async function notRecorded(
  { promtool, every = '1m', alerts = [] }: Pick<Tools, 'promtool'> & Suite,
  resources: readonly Resource[],
  series: readonly object[],
  expected: readonly object[],
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-rules-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const suite = {
    rule_files: ['rules.json'],
    evaluation_interval: every,
    tests: [{ interval: every, input_series: series, promql_expr_test: expected, alert_rule_test: alerts }],
  }
  writeFileSync(join(folder, 'rules.json'), JSON.stringify(only(resources, 'PrometheusRule').spec))
  writeFileSync(join(folder, 'suite.json'), JSON.stringify(suite))
  const tested = await runTool(promtool, ['test', 'rules', join(folder, 'suite.json')])
  return tested.isOk ? '' : tested.text
}
