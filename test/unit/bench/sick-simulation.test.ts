import { expect, onTestFinished, test } from 'vitest'
import { holdLimits } from '../../../bench/support/held-limits.ts'
import { answering, healthy } from '../../../bench/sick/hook-models.ts'
import { measure } from '../../../bench/sick/measure.ts'
import { sickModels } from '../../../bench/sick/scenes.ts'
import { simulate } from '../../../bench/sick/simulation.ts'

/**
 * Tests of the simulation itself. If nothing slows or stops a hook, its results must be those that are known
 * without a simulation.
 */

const feed = [{ fromS: 0, untilS: 300, perSecond: 2 }]
const never = { failureShare: 1, minResults: 1e9, windowMs: 10_000, openMs: 1, maxOpenMs: 1 }

test('where no breaker opens and no limit is learned, each hook gets what a retrier without one takes to it, in four hours that take seconds', async () => {
  onTestFinished(holdLimits())
  const destinations = sickModels.map((model, at) => ({ id: `sick-${at}`, hooks: [model], feed }))
  const simulated = await simulate({ destinations, settings: { breaker: never } })
  expect(simulated.virtualMs).toBeGreaterThan(3.8 * 3_600_000)
  for (const { messages, unfinished, hooks } of measure(simulated)) {
    expect({ messages, unfinished }).toEqual({ messages: 600, unfinished: 0 })
    for (const hook of hooks) {
      expect(hook).toMatchObject({ untried: 0, requestsEach: hook.patientRequestsEach })
      expect(hook.deliveredRatio ?? 1).toBe(1)
    }
  }
})

test('a healthy hook gets each message once, some milliseconds after it came, and the simulation ends with the last', async () => {
  const simulated = await simulate({ destinations: [{ id: 'well', hooks: [healthy], feed }] })
  const [well] = measure(simulated)
  expect(well).toMatchObject({ messages: 600, unfinished: 0, parkedEach: 0, dead: {} })
  expect(well?.hooks[0]).toMatchObject({ untried: 0, taken: 600, requestsEach: 1 })
  expect(well?.hooks[0]?.firstTryMs.most).toBeLessThan(10)
  expect(simulated.virtualMs).toBeLessThan(301_000)
})

test('of several hooks each is told apart', async () => {
  const destinations = [{ id: 'both', hooks: [healthy, answering(500)], feed }]
  const [both] = measure(await simulate({ destinations, settings: { breaker: never } }))
  const requests = both?.hooks.map(({ model, requestsEach, taken }) => [model, requestsEach, taken])
  expect(requests).toEqual([
    ['healthy', 1, 600],
    ['answers 500', 1, 0],
  ])
})
