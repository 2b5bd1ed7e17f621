import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CountingReceiver, startCountingReceiver } from '../../support/counting-receiver.ts'
import { tryReplay } from '../../support/replay-trial.ts'

let receiver: CountingReceiver

beforeAll(async () => {
  receiver = await startCountingReceiver()
})
afterAll(() => receiver.stop())

/** The same test with a million dead letters is in `test/fault`. */
test('a replay sends what was asked for and no more, at its rate, though its owner is killed twice', async () => {
  const perSecond = 100
  const trial = await tryReplay({ letters: 15_000, hours: 5, perSecond, receiver })
  expect(trial).toMatchObject({
    counted: trial.wanted,
    job: trial.wanted,
    arrived: trial.wanted,
    strangers: 0,
    strangersLogged: 0,
  })
  // Two workers were killed. Each may have lost at most one second of its delivery log.
  expect(trial.logged).toBeGreaterThanOrEqual(trial.wanted - 2 * perSecond)
  expect(trial.wanted).toBe(1_000)
  expect(trial.owners).toBe(3)
  // A batch has the records of a quarter of a second.
  expect(trial.repeatedByJob).toBeLessThanOrEqual(2 * (perSecond / 4))
  expect(trial.busiest).toBeLessThanOrEqual(1.1)
})
