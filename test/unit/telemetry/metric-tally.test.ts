import { AggregatorRegistry, Counter, Histogram, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { TallyCounter, TallyHistogram } from '../../../src/telemetry/metric-tally.ts'

const counter = { name: 'things_total', help: 'Things.', labelNames: ['kind'] }
const histogram = { name: 'wait_seconds', help: 'Waits.', labelNames: ['kind'], buckets: [0.1, 1, 10] }

/** Values at, below and above each bound of the histogram. */
const values = [0, 0.1, 0.100_1, 0.5, 1, 9, 10, 10.1, 400]

test("a tallied counter reads as prom-client's own, however often it is read", async () => {
  const [theirs, ours] = [new Registry(), new Registry()]
  const expected = new Counter({ ...counter, registers: [theirs] })
  const tallied = new TallyCounter({ ...counter, registers: [ours] })
  const [a, b] = [tallied.series({ kind: 'a' }), tallied.series({ kind: 'b' })]
  expected.inc({ kind: 'a' }, 0)
  expected.inc({ kind: 'b' }, 0)
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i <= round; i++) {
      expected.inc({ kind: 'a' })
      a.inc()
    }
    expected.inc({ kind: 'b' })
    b.inc()
    expect(await ours.metrics()).toBe(await theirs.metrics())
    expect(await ours.getMetricsAsJSON()).toEqual(await theirs.getMetricsAsJSON())
  }
})

test("a tallied histogram reads as prom-client's own, with labels and without", async () => {
  for (const labels of [{ kind: 'a' }, {}]) {
    const [theirs, ours] = [new Registry(), new Registry()]
    const expected = new Histogram({ ...histogram, registers: [theirs] })
    const tallied = new TallyHistogram({ ...histogram, registers: [ours] }).series(labels)
    for (const value of values) {
      expected.observe(labels, value)
      tallied.observe(value)
    }
    expect(await ours.metrics()).toBe(await theirs.metrics())
    const [[tallies], [plain]] = [await ours.getMetricsAsJSON(), await theirs.getMetricsAsJSON()]
    expect(plain).toMatchObject({ ...tallies })
  }
})

test('the tallies of several processes are added up', async () => {
  const parts = await Promise.all(
    [1, 2].map(async (times) => {
      const registry = new Registry()
      const observed = new TallyHistogram({ ...histogram, registers: [registry] }).series({ kind: 'a' })
      const counted = new TallyCounter({ ...counter, registers: [registry] }).series({ kind: 'a' })
      for (let i = 0; i < times; i++) {
        observed.observe(0.5)
        counted.inc()
      }
      return registry.getMetricsAsJSON()
    }),
  )
  const text = await AggregatorRegistry.aggregate(parts).metrics()
  expect(text).toContain('things_total{kind="a"} 3')
  expect(text).toContain('wait_seconds_bucket{le="0.1",kind="a"} 0')
  expect(text).toContain('wait_seconds_bucket{le="1",kind="a"} 3')
  expect(text).toContain('wait_seconds_count{kind="a"} 3')
  expect(text).toContain('wait_seconds_sum{kind="a"} 1.5')
})
