import { afterEach, expect, test } from 'vitest'
import { until } from '../../../support/until.ts'
import { type LanesAtWork, openLanes, Parcel, stopLanes } from './parcel.ts'

/** Tests of the requests in flight that all lanes share, beside destinations that answer slowly. */

afterEach(stopLanes)

const maxInFlight = 16
const slow = 40
/** How many requests slow destinations have together. */
const mostSlow = 14

/** Lets more destinations than there are requests answer slowly, until all of them are known to be slow. */
async function manySlow(): Promise<LanesAtWork> {
  const all = openLanes({ maxInFlight })
  const { lanes, started } = all
  const offerAll = (): void => {
    for (let one = 0; one < slow; one++) lanes.offer(new Parcel(`slow-${one}`))
  }
  offerAll()
  expect(lanes.inFlight).toBe(maxInFlight)
  let sinceMs = performance.now()
  await until('they leave some', () => {
    if (performance.now() - sinceMs < 1_300) return false
    sinceMs = performance.now()
    offerAll()
    for (const parcel of started.splice(0)) lanes.finished(parcel)
    return lanes.inFlight === mostSlow
  })
  return all
}

test('more slow destinations than requests in flight leave some of these to others', async () => {
  const all = await manySlow()
  const { lanes, started } = all
  expect(lanes.inFlight).toBe(mostSlow)
  expect(lanes.mayStartWithin('slow-0', 250)).toBe(false)
  expect(lanes.mayStartWithin('healthy', 250)).toBe(true)
  for (let messages = 0; messages < 5; messages++) {
    lanes.offer(new Parcel('healthy'))
    const parcel = started.pop() ?? new Parcel('')
    expect(parcel.laneKey).toBe('healthy')
    lanes.finished(parcel)
  }
  expect(lanes.inFlight).toBe(mostSlow)
})

test('destinations that were slow have all requests in flight once they are fast', async () => {
  const { lanes, started } = await manySlow()
  for (let answers = 0; answers < 80; answers++) {
    const parcel = started.shift()
    if (parcel !== undefined) lanes.finished(parcel)
  }
  for (let round = 0; round < 4; round++)
    for (let one = 0; one < slow; one++) lanes.offer(new Parcel(`slow-${one}`))
  for (let answers = 0; answers < 80; answers++) {
    const parcel = started.shift()
    if (parcel !== undefined) lanes.finished(parcel)
  }
  expect(lanes.inFlight).toBe(maxInFlight)
})
