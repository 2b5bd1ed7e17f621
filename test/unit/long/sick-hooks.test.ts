import { beforeAll, describe, expect, test } from 'vitest'
import { answering, failing, healthy, type HookModel, silent } from '../../../bench/sick/hook-models.ts'
import { type DestinationMeasure, measure } from '../../../bench/sick/measure.ts'
import { destinationsOf } from '../../../bench/sick/scenes.ts'
import { simulate } from '../../../bench/sick/simulation.ts'

/**
 * Tests of the messages that hooks get while they fail for hours. They use the real pipeline with every
 * setting at its default, on a virtual clock. `npm run bench -- sick` shows the same with many more messages.
 */

const messagesEach = 600

/** At the highest rate, the requests to sick hooks are more than a few. */
const few = { share: 0.1, perSecond: 2 }

describe.each([5, 50, 500])('%i messages a second to each sick hook', (perSecond) => {
  let measured: readonly DestinationMeasure[]

  beforeAll(async () => {
    const destinations = destinationsOf({
      perSecond,
      feedS: messagesEach / perSecond,
      healthyS: 5,
      ladderTimes: 1,
    })
    const settings = perSecond === 500 ? { sickLoad: few } : {}
    measured = measure(await simulate({ destinations, settings }))
  })

  test('each message is posted to its hook at least once, however sick that is', () => {
    const untried = measured.flatMap(({ hooks }) => hooks.map(({ model, untried: none }) => [model, none]))
    expect(untried.filter(([, none]) => none !== 0)).toEqual([])
  })

  test('hooks that fail half or nine of ten requests get what a retrier delivers that knows no breaker', () => {
    const sick = hooksOf(measured).filter(({ model }) =>
      [failing(0.5).name, failing(0.9).name].includes(model),
    )
    expect(sick.map(({ messages }) => messages)).toEqual([messagesEach, messagesEach])
    for (const hook of sick) expect(hook.deliveredRatio).toBeGreaterThanOrEqual(0.98)
  })

  test('a hook that fails all requests gets every try of the ladder, or little more than two if that is too much', () => {
    const hopeless = hooksOf(measured).find(({ model }) => model === failing(1).name)
    if (perSecond < 500) expect(hopeless?.requestsEach).toBe(hopeless?.patientRequestsEach)
    else expect(hopeless?.requestsEach).toBeLessThanOrEqual(2.1)
  })

  test('healthy hooks get each message once, and at once as long as the sick are less than a tenth of the traffic', () => {
    const well = measured.filter(({ hooks }) => hooks.every(({ model }) => model === healthy.name))
    expect(well).not.toEqual([])
    for (const { id, messages, unfinished, parkedEach, hooks } of well) {
      expect({ id, unfinished, parkedEach }).toEqual({ id, unfinished: 0, parkedEach: 0 })
      expect(hooks[0]).toMatchObject({ taken: messages, requestsEach: 1 })
      // At 500 messages a second to each of five sick hooks, they have at least a third of the traffic.
      if (perSecond < 500) expect(hooks[0]?.firstTryMs.p99).toBeLessThan(25)
    }
  })
})

test.each([
  ['asks for a pause with each answer', answering(429, 1_000)],
  ['answers 500', answering(500)],
])('a second URL that %s gets each message once, and the record settles by the first', async (_, sick) => {
  const feed = [{ fromS: 0, untilS: 100, perSecond: 20 }]
  const simulated = await simulate({ destinations: [{ id: 'both', hooks: [healthy, sick], feed }] })
  const [both] = measure(simulated)
  expect(both).toMatchObject({ messages: 2_000, unfinished: 0, parkedEach: 0, dead: {} })
  const [first, second] = both?.hooks ?? []
  expect(first).toMatchObject({ taken: 2_000, requestsEach: 1 })
  expect(first?.firstTryMs.most).toBeLessThan(25)
  expect(second?.untried).toBeLessThanOrEqual(0.05 * 2_000)
  expect(second?.requestsEach).toBeLessThanOrEqual(1)
})

const seldomInTime: HookModel = {
  name: 'takes one of ten, and hangs otherwise',
  answer(asked) {
    const answer = failing(0.9).answer(asked)
    const isTaken = answer.outcome.kind === 'answer' && answer.outcome.status === 200
    return isTaken ? answer : { outcome: { kind: 'timeout' }, afterMs: 5_000 }
  },
}

test('a hook that hangs nine of ten times gets what a retrier delivers that knows no breaker', async () => {
  const feed = [{ fromS: 0, untilS: 300, perSecond: 5 }]
  const simulated = await simulate({ destinations: [{ id: 'hangs', hooks: [seldomInTime], feed }] })
  const [hook] = hooksOf(measure(simulated))
  expect(hook).toMatchObject({ untried: 0 })
  expect(hook?.deliveredRatio).toBeGreaterThanOrEqual(0.98)
})

test.each([429, 503])(
  'no message dies untried for a hook that always answers %i and asks for a minute',
  async (status) => {
    const feed = [{ fromS: 0, untilS: 3_600, perSecond: 0.2 }]
    const hooks = [answering(status, 60_000)]
    const [asks] = measure(await simulate({ destinations: [{ id: 'asks', hooks, feed }] }))
    expect(asks).toMatchObject({ messages: 720, unfinished: 0, dead: { expired: 720 } })
    expect(asks?.hooks[0]).toMatchObject({ untried: 0 })
  },
)

test('with failover a first URL that is well again gets the messages again', async () => {
  let sinceMs = 0
  const recovering: HookModel = {
    name: 'is down for two minutes',
    answer(asked) {
      if (sinceMs === 0) sinceMs = asked.nowMs
      return (asked.nowMs - sinceMs < 120_000 ? answering(500) : healthy).answer(asked)
    },
  }
  const feed = [{ fromS: 0, untilS: 600, perSecond: 10 }]
  const hooks = [recovering, healthy]
  const simulated = await simulate({ destinations: [{ id: 'both', hooks, feed, strategy: 'failover' }] })
  const [first, second] = hooksOf(measure(simulated))
  expect(first?.taken).toBeGreaterThan(0.7 * 6_000)
  expect((first?.taken ?? 0) + (second?.taken ?? 0)).toBe(6_000)
  expect(first?.requestsEach).toBeLessThan(0.85)
})

test('a URL that never answers, beside one that refuses, holds up no other destination', async () => {
  const feed = [{ fromS: 0, untilS: 20, perSecond: 200 }]
  const simulated = await simulate({
    destinations: [
      { id: 'both', hooks: [answering(400), silent(5_000)], feed },
      { id: 'well', hooks: [healthy], feed },
    ],
  })
  const well = measure(simulated).find(({ id }) => id === 'well')
  expect(well).toMatchObject({ parkedEach: 0, unfinished: 0 })
  expect(well?.hooks[0]?.firstTryMs.p99).toBeLessThan(100)
})

function hooksOf(destinations: readonly DestinationMeasure[]) {
  return destinations.flatMap(({ hooks }) => hooks)
}
