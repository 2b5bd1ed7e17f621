import { describe, expect, test } from 'vitest'
import { answering, failing, healthy, type HookModel, silent } from '../../../bench/sick/hook-models.ts'
import { measure } from '../../../bench/sick/measure.ts'
import { defaultSettings, silentObserver, simulate } from '../../../bench/sick/simulation.ts'

/**
 * Tests of the reports on messages that a failing hook never gets. They use the real pipeline on a virtual
 * clock.
 */

const defaults = defaultSettings()
/** Settings with one socket for all failing hooks, and a short wait for a turn. */
const tight = { ...defaults.bulkhead, maxInFlight: 1, maxTries: 20, waitMs: 250 }
/**
 * Settings of the breakers. If a hook fails half of its requests, its breaker stays closed. If it never
 * answers, its breaker opens.
 */
const breaker = { ...defaults.breaker, failureShare: 0.9 }

const oftenSecondTime: HookModel = {
  name: 'takes every other message the second time',
  answer: (asked) => (asked.before === 0 && asked.message % 2 === 0 ? answering(500) : healthy).answer(asked),
}

describe('a message that a second URL never gets', () => {
  test.each([
    ['the first attempt', healthy],
    ['the first or the second attempt', oftenSecondTime],
  ])('is reported once for that URL, where the first URL takes it in %s', async (_, first) => {
    const omitted = new Map<string, number>()
    const simulated = await simulate({
      destinations: [
        {
          id: 'both',
          hooks: [first, silent(5_000)],
          feed: [{ fromS: 0, untilS: 120, perSecond: 20 }],
        },
      ],
      settings: {
        bulkhead: tight,
        breaker,
        observer: {
          ...silentObserver,
          omitted({ messageId }, hookId) {
            const name = `${hookId} ${messageId}`
            omitted.set(name, (omitted.get(name) ?? 0) + 1)
          },
        },
      },
    })
    const [both] = measure(simulated)
    const [, second] = both?.hooks ?? []
    expect(both).toMatchObject({ messages: 2_400, unfinished: 0, dead: {} })
    expect(second?.untried).toBeGreaterThan(1_000)
    expect(omitted.size).toBe(second?.untried)
    expect([...omitted.values()].filter((times) => times !== 1)).toEqual([])
    expect([...omitted.keys()].filter((name) => !name.startsWith('hook-1 '))).toEqual([])
  })
})

test('a message for which a failing hook has no turn in four hours ends as expired_untried, and says what to raise', async () => {
  const details = new Set<string>()
  const simulated = await simulate({
    destinations: [
      { id: 'silent', hooks: [silent(5_000)], feed: [{ fromS: 0, untilS: 200, perSecond: 20 }] },
      { id: 'fails', hooks: [failing(1)], feed: [{ fromS: 0, untilS: 200, perSecond: 0.1 }] },
    ],
    settings: {
      bulkhead: tight,
      observer: {
        ...silentObserver,
        deadLettered: (reason, detail) => {
          if (reason === 'expired_untried') details.add(detail)
        },
      },
    },
  })
  const [silentOne] = measure(simulated)
  const untried = silentOne?.hooks[0]?.untried ?? 0
  expect(untried).toBeGreaterThan(1_000)
  expect(silentOne?.dead).toEqual({ expired: 4_000 - untried, expired_untried: untried })
  expect([...details]).toEqual([expect.stringContaining('SLUICE_DELIVERY_MAX_IN_FLIGHT_SICK')])
})
