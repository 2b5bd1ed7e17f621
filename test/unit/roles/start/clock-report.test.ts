import { Gauge, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { ClockReport, clockReportOf } from '../../../../src/roles/start/clock-report.ts'

const minute = 60_000

function start() {
  const clock = { nowMs: 0 }
  const clockSkew = new Gauge({ name: 'skew', help: 'skew', registers: [new Registry()] })
  const lines: string[] = []
  const log = {
    info: (message: string) => void lines.push(message),
    warn: (fields: object, message: string) => void lines.push(`${JSON.stringify(fields)} ${message}`),
  }
  const report = new ClockReport({ metrics: { clockSkew }, log, now: () => clock.nowMs })
  const shown = async () => (await clockSkew.get()).values[0]?.value
  return { clock, report, lines, shown }
}

test('of several brokers the one that differs most is reported, once', async () => {
  const { report, lines, shown } = start()
  for (let write = 0; write < 1_000; write++) report.take(write % 3, write % 3 === 1 ? -120_000 : 20)
  expect(await shown()).toBe(120)
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain('{"broker":1,"seconds":120} the clock of this machine is behind')
  report.take(1, 0)
  expect(await shown()).toBe(0.02)
  expect(lines[1]).toBe('the clock agrees with the clocks of the brokers again')
})

test('a difference counts for ten minutes', async () => {
  const { clock, report, shown } = start()
  report.take(0, 300_000)
  clock.nowMs += 9 * minute
  report.look()
  expect(await shown()).toBe(300)
  clock.nowMs += 2 * minute
  report.look()
  expect(await shown()).toBe(0)
})

test('a difference that no receiver minds is only a metric', async () => {
  const { report, lines, shown } = start()
  report.take(0, 29_000)
  expect(await shown()).toBe(29)
  expect(lines).toEqual([])
})

test('a part that writes nothing does not hide what another part of the process sees', async () => {
  const clockSkew = new Gauge({ name: 'skew', help: 'skew', registers: [new Registry()] })
  const options = { metrics: { clockSkew }, log: { info: () => undefined, warn: () => undefined } }
  const [worker, gateway] = [clockReportOf(options), clockReportOf(options)]
  worker.take(1, 120_000)
  gateway.look()
  expect((await clockSkew.get()).values[0]?.value).toBe(120)
})
