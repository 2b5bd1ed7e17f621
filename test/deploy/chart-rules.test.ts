import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { chart, helmTemplate, only, render } from './render.ts'
import { notRecorded, told } from './rules-of-chart.ts'
import { installTools, promtoolHangsAfterMs, type Tools } from './tools.ts'

let tools: Tools

beforeAll(async () => {
  tools = await installTools()
})

const rendered = (...args: readonly string[]) => render(tools, ...args)

describe('the rules of a release', () => {
  const on = ['--set', 'metrics.prometheusRule.enabled=true']
  type Alert = { alert?: string; expr: string; annotations: Record<string, string> }
  async function alertsOf(...args: readonly string[]): Promise<Alert[]> {
    const { groups }: { groups: { rules: Alert[] }[] } = Object(
      only(await rendered(...on, ...args), 'PrometheusRule').spec,
    )
    return groups.flatMap(({ rules }) => rules).filter(({ alert }) => alert !== undefined)
  }

  test('are about it alone: another in the namespace hides nothing of it, and adds nothing', async () => {
    const other = [
      info('other-sluice-worker-0', 'worker'),
      info('other-sluice-gateway-7f-x', 'gateway'),
      catalog('other-sluice-worker-0', 'b'),
      told('sluice_group_lag_records', 'pod="other-sluice-worker-0",topic="events"', '0+90000x40'),
      told('sluice_faults_total', 'pod="other-sluice-worker-0"', '0+1x40'),
    ]
    const resources = await rendered(...on)
    const runs = [
      info('release-sluice-worker-0', 'worker'),
      info('release-sluice-gateway-5c-x', 'gateway'),
      catalog('release-sluice-worker-0', 'a'),
      told('sluice_group_lag_records', 'pod="release-sluice-worker-0",topic="events"', '3x40'),
    ]
    const all = { expr: 'ALERTS{alertstate="firing"}', eval_time: '30m', exp_samples: [] }
    const lagOfIt = {
      expr: 'sluice:group_lag_records:max',
      eval_time: '30m',
      exp_samples: [
        {
          labels: 'sluice:group_lag_records:max{namespace="sluice",release="release",topic="events"}',
          value: 3,
        },
      ],
    }
    expect(await notRecorded(tools, resources, [...other, ...runs], [all, lagOfIt])).toBe('')
    const isGone = [
      info('release-sluice-worker-0', 'worker', '1x5'),
      info('release-sluice-admin-5c-x', 'admin'),
      catalog('release-sluice-admin-5c-x', 'a'),
    ]
    const missed = ['SluiceNoWorker', 'SluiceNoGateway', 'SluiceNothingTells'].map((name) => firing(name))
    expect(await notRecorded(tools, resources, [...other, ...isGone], missed)).toBe('')
  })

  test('name the failing destinations of the release alone, in a namespace that it shares', async () => {
    const resources = await rendered(...on)
    const series = [
      ...failing('release-sluice-worker-0', 'crm'),
      ...failing('other-sluice-worker-0', 'theirs'),
    ]
    const alert = (await alertsOf()).find((one) => one.alert === 'SluiceEndpointFailing')
    const { summary: _, ...annotations } = alert?.annotations ?? {}
    const expected = {
      alertname: 'SluiceEndpointFailing',
      eval_time: '10m',
      exp_alerts: [
        {
          exp_labels: { namespace: 'sluice', release: 'release', severity: 'warning' },
          exp_annotations: {
            ...annotations,
            summary: 'Most requests to a URL of a destination have failed for 1h 10m 1s.',
            destinations: 'crm (for 1h 0m 0s) ',
          },
        },
      ],
    }
    expect(await notRecorded({ ...tools, alerts: [expected] }, resources, series, [])).toBe('')
  })

  test('name the page of a runbook by its URL, which the chart has as well', async () => {
    const base = 'https://git.example/sluice/deploy/runbooks/'
    for (const { alert, annotations } of await alertsOf(
      '--set',
      `metrics.prometheusRule.runbookBaseUrl=${base}`,
    )) {
      const { runbook = '', runbook_url: url } = annotations
      const page = `${runbook.replace('sluice runbook ', '')}.md`
      expect(url, `${alert}`).toBe(`${base}${page}`)
      expect(existsSync(join(chart, 'files/runbooks', page)), `${alert}`).toBe(true)
    }
  })

  test(
    'miss a worker that nobody has seen for a day, or ever',
    { timeout: promtoolHangsAfterMs },
    async () => {
      const resources = await rendered(...on)
      const gateway = info('release-sluice-gateway-5c-x', 'gateway', '1x400')
      const worker = (values: string) => info('release-sluice-worker-0', 'worker', values)
      const slowly = { ...tools, every: '4m' }
      const missed = [firing('SluiceNoWorker'), { ...firing('SluiceNoWorker'), eval_time: '26h' }]
      expect(await notRecorded(slowly, resources, [gateway], missed)).toBe('')
      expect(await notRecorded(slowly, resources, [gateway, worker('1x2')], missed)).toBe('')
      const none = [{ expr: 'ALERTS', eval_time: '26h', exp_samples: [] }]
      expect(await notRecorded(slowly, resources, [gateway, worker('1x400')], none)).toBe('')
    },
  )

  test('leave out those that are disabled, and those of a gateway which is not to be there', async () => {
    const names = (await alertsOf()).map(({ alert }) => alert)
    const fewer = await alertsOf(
      '--set',
      'metrics.prometheusRule.disabled={SluiceDeadLetters,SluiceDeliverySloSlowBurn},gateway.enabled=false',
    )
    const objective = ['SluiceGatewaySloFastBurn', 'SluiceGatewaySloSlowBurn']
    const gone = ['SluiceNoGateway', 'SluiceDeadLetters', 'SluiceDeliverySloSlowBurn', ...objective]
    expect(names).toEqual(expect.arrayContaining(gone))
    expect(fewer.map(({ alert }) => alert)).toEqual(names.filter((name) => !gone.includes(name ?? '')))
    const unknown = ['--set', 'kafka.brokers={kafka:9092},image.repository=sluice', ...on]
    const { isOk, text } = await helmTemplate(tools, [
      ...unknown,
      '--set',
      'metrics.prometheusRule.disabled={SluiceDeadLeters}',
    ])
    expect(isOk).toBe(false)
    expect(text).toContain('there is no alert SluiceDeadLeters')
  })

  test('take matchers that are given', async () => {
    const alerts = await alertsOf('--set-string', 'metrics.prometheusRule.seriesMatchers=job="a$1b"')
    expect(alerts.find(({ alert }) => alert === 'SluiceNothingTells')?.expr.trim()).toBe(
      'absent(sluice_build_info{job="a$1b",role=~"worker|gateway|up"})',
    )
    for (const { expr } of alerts)
      for (const [selector] of expr.matchAll(/\bsluice_\w+(\{[^}]*\})?/g))
        expect(selector).toMatch(/^sluice_\w+\{job="a\$1b"[,}]/)
  })
})

/**
 * Returns the expectation, for promtool, that one alert with this name fires for the release after 30
 * minutes.
 */
function firing(alert: string) {
  const expr = `count by (release) (ALERTS{alertname="${alert}",alertstate="firing"})`
  return { expr, eval_time: '30m', exp_samples: [{ labels: '{release="release"}', value: 1 }] }
}

function info(pod: string, role: string, values = '1x40') {
  return told('sluice_build_info', `pod="${pod}",role="${role}"`, values)
}

function catalog(pod: string, version: string) {
  return told('sluice_catalog_info', `pod="${pod}",version="${version}"`, '1x40')
}

/** Returns the series of a pod that has failed to reach a destination for an hour. */
function failing(pod: string, destination: string) {
  const instance = `pod="${pod}",instance="${pod}:9400"`
  return [
    told('sluice_breaker_open_seconds', instance, '3601+60x40'),
    told('sluice_failing_destination_seconds', `${instance},destination="${destination}"`, '3600x40'),
  ]
}
