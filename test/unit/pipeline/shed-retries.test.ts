import { expect, test } from 'vitest'
import { until } from '../../support/until.ts'
import { type Destination, destinationOf, failed, stage, type StageOptions, startMs, taken } from './stage.ts'

/** Tests of retries to a destination whose lane holds them for too long each time. */

const minute = 60_000

test('a retry that comes to no try on any rung is tried at the end, and does not expire after one try', async () => {
  let nowMs = startMs
  const all = stage({
    destinations: [destinationOf('crm', { maxInFlight: 1 })],
    ladder: { waitsMs: [minute], thenMs: minute, limitMs: 3.5 * minute },
    laneWaitMs: 50,
    now: () => nowMs,
  })
  all.identify('retried')
  await all.answer(failed)
  all.identify('in flight', { userId: 'other' })
  expect(all.bodies()).toEqual(['in flight'])
  for (let rung = 2; rung <= 3; rung++) {
    nowMs += minute
    all.told.length = 0
    all.retry(all.written.shift())
    await until('it has waited too long', () => all.told.length > 0)
    expect(all.told).toEqual(['parked crm retried: overflow'])
  }
  nowMs += minute
  all.told.length = 0
  all.retry(all.written.shift())
  all.identify('new', { userId: 'third' })
  await until('what is new has waited too long', () => all.told.length > 0)
  expect(all.told).toEqual(['parked crm new: overflow'])
  await all.answer(taken)
  expect(all.bodies()).toEqual(['retried'])
  await all.answer(taken)
  expect(all.told.slice(1)).toEqual(['delivered crm in flight', 'delivered crm retried'])
  all.pipeline.stop()
})

/** Starts a lane in which a last try has waited too long, behind a request in flight. */
async function withLastTry(settings: StageOptions) {
  const all = stage({ laneWaitMs: 50, ...settings })
  all.identify('last')
  await all.answer(failed)
  all.identify('in flight', { userId: 'other' })
  const waiting = all.written.shift()
  if (waiting === undefined) throw new Error('nothing was written')
  const headers = { ...waiting.headers, 'expires-at': String(startMs + 1_000) }
  const record = all.retry({ ...waiting, headers })
  all.identify('new', { userId: 'third' })
  all.told.length = 0
  await until('what is new has waited too long', () => all.told.length > 0)
  expect(all.told.splice(0)).toEqual(['parked crm new: overflow'])
  return { ...all, record }
}

const crm = destinationOf('crm', { maxInFlight: 1 })

test('a last try waits in its lane until the worker stops, and is then left to the next owner', async () => {
  const { record, ...all } = await withLastTry({ destinations: [crm] })
  const drained = all.pipeline.drain()
  await all.answer(taken)
  await drained
  expect(all.told).toEqual(['delivered crm in flight'])
  expect([record.settled, all.pipeline.queued]).toEqual([0, 0])
  all.pipeline.stop()
})

const catalogOf = (destination: Destination) => ({
  sources: new Map([['space', { enabled: true, kind: 'audiences' as const }]]),
  destinations: new Map([['crm', destination]]),
  destinationsBySource: new Map([['space', [destination]]]),
})

test('a last try waits in its lane no longer if its destination is paused', async () => {
  let catalog = catalogOf(crm)
  const { record, ...all } = await withLastTry({ catalog: () => catalog })
  catalog = catalogOf({ ...crm, state: 'paused' })
  await until('it is parked', () => record.settled > 0)
  expect(all.told).toEqual(['parked crm last: paused'])
  all.pipeline.stop()
})
