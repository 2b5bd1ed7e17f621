import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { problemCodes, statusOf, type ProblemCode } from '../../../../src/gateway/calls/answer.ts'
import { apiRoutes } from '../../../../src/gateway/http/api-routes.ts'
import { type LeftOutReason, rejectedReasons } from '../../../../src/gateway/messages/left-out-reasons.ts'
import { createGatewayMetrics } from '../../../../src/telemetry/gateway-metrics.ts'

const page = readFileSync(join(import.meta.dirname, '../../../../docs/gateway.md'), 'utf8')

const metricsPage = readFileSync(join(import.meta.dirname, '../../../../docs/metrics.md'), 'utf8')

const reasons: readonly LeftOutReason[] = [...rejectedReasons, 'empty_batch', 'unknown_source']

function isCode(code: string): code is ProblemCode {
  return problemCodes.includes(code)
}

describe('the page about the gateway', () => {
  test('has every code, with its status', () => {
    const rows = [...page.matchAll(/^\| (\d{3}) +\| `(\w+)`/gm)].map(
      ([, status, code]) => `${status} ${code}`,
    )
    const expected = problemCodes.filter(isCode).map((code) => `${statusOf(code)} ${code}`)
    expect(rows).toHaveLength(expected.length)
    expect(new Set(rows)).toEqual(new Set(expected))
  })

  test('has every reason for which messages are left out', () => {
    expect(reasons.filter((reason) => !page.includes(`\`${reason}\``))).toEqual([])
  })

  test('has every call and metric', async () => {
    const metrics = await createGatewayMetrics().registry.getMetricsAsJSON()
    const names = metrics.map(({ name }) => name).filter((name) => name.startsWith('sluice_'))
    expect(names.length).toBeGreaterThan(8)
    expect(names.filter((name) => !metricsPage.includes(`\`${name}\``))).toEqual([])
    expect(page).toContain('](metrics.md)')
    const calls = apiRoutes.map(({ paths }) => paths[0].replace('/v1/', ''))
    expect(calls.filter((call) => !page.includes(call))).toEqual([])
  })
})
