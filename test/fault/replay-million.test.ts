import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import { tryReplay } from '../support/replay-trial.ts'

let receiver: CountingReceiver

beforeAll(async () => {
  receiver = await startCountingReceiver()
})
afterAll(() => receiver.stop())

test('of a million dead letters one destination’s of one hour are replayed, at 2,000 a second, though the owner is killed twice', async () => {
  const perSecond = 2_000
  const trial = await tryReplay({ letters: 1_000_000, hours: 12, perSecond, receiver })
  process.stderr.write(`replay: ${JSON.stringify(trial)}\n`)
  expect(trial).toMatchObject({
    counted: trial.wanted,
    job: trial.wanted,
    arrived: trial.wanted,
    strangers: 0,
    strangersLogged: 0,
    owners: 3,
  })
  expect(Math.abs(trial.wanted - 1_000_000 / 12 / 3)).toBeLessThan(10)
  // A batch has the records of a quarter of a second.
  expect(trial.repeatedByJob).toBeLessThanOrEqual(2 * (perSecond / 4))
  // Two workers were killed. Each may have lost half a second of its delivery log.
  expect(trial.logged).toBeGreaterThanOrEqual(trial.wanted - 2 * (perSecond / 2))
  expect(trial.busiest).toBeLessThanOrEqual(1.1)
})
