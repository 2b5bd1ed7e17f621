import { afterEach, expect, test } from 'vitest'
import { encodeState, encodeStateKey } from '../../../../src/audience/records/state-record.ts'
import { remove } from '../producers.ts'
import { SimulatedLog, SimulatedOwner, topics, turns, usersOf } from '../simulated-log.ts'

/** Tests of units that are left while their states are being prepared, or while requests are under way. */

const [ann = ''] = usersOf(0, 1)
const stateKey = { kind: 'property', userId: ann, spaceId: 'space', property: 'lions' } as const
const owners: SimulatedOwner[] = []

afterEach(() => {
  for (const owner of owners.splice(0)) owner.kill(() => false)
})

/** Appends a state of Ann that another owner has written. */
function append(log: SimulatedLog, value: boolean): void {
  const version = { atMs: log.nowMs, isNative: true, partition: 0, offset: 99 }
  const state = { kind: 'audience', id: 'a1', name: 'Lions', value: String(value), version, since: version }
  const record = encodeState({ ...state, kind: 'audience' }, true)
  log.append(topics.states, 0, { key: encodeStateKey(stateKey), value: record })
}

async function valueOf({ units }: SimulatedOwner): Promise<string | undefined> {
  const page = await units.statesOf(0, { spaceId: 'space', after: null, withLeft: true, count: 9 })
  return page?.states[0]?.state.value
}

test('a unit that was left before its store was opened does not open, and is read anew when it comes back', async () => {
  const log = new SimulatedLog()
  append(log, true)
  const answer = Promise.withResolvers<void>()
  const ports = {
    async rangeOfStates(unit: number) {
      await answer.promise
      return { start: 0, end: log.records(topics.states, unit).length }
    },
  }
  const owner = new SimulatedOwner(log, { ports })
  owners.push(owner)
  const preparing = owner.units.prepare(0).catch((error: unknown) => `failed: ${String(error)}`)
  await turns()
  await owner.units.release(0)
  answer.resolve()
  expect.soft(await preparing).toBe('failed: Error: unit 0 was left before it was restored')
  expect.soft(await valueOf(owner)).toBeUndefined()
  log.nowMs++
  append(log, false)
  await owner.units.prepare(0)
  expect(await valueOf(owner)).toBe('false')
})

test('a user of a unit that was left may still have been deleted, since requests of the unit may end later', async () => {
  const log = new SimulatedLog()
  const owner = new SimulatedOwner(log)
  owners.push(owner)
  await owner.begin()
  remove(log)
  owner.deliver(topics.deletions, 0)
  await owner.landAll()
  expect(owner.units.mayBeDeleted(0, ann, 'space')).toBe(true)
  await owner.units.stop()
  expect(owner.units.mayBeDeleted(0, ann, 'space')).toBe(true)
})

test('only events of a user who may have been deleted may be suppressed, while the unit is here', async () => {
  const log = new SimulatedLog()
  const owner = new SimulatedOwner(log)
  owners.push(owner)
  await owner.begin()
  const [, bob = ''] = usersOf(0, 2)
  const isFor = (type: string, userId: string): boolean =>
    owner.units.mayBeSuppressed({
      unit: 0,
      sourceId: 'web',
      body: Buffer.from(JSON.stringify({ type, userId })),
    })
  expect(isFor('track', ann)).toBe(false)
  remove(log)
  owner.deliver(topics.deletions, 0)
  await owner.landAll()
  expect([isFor('track', ann), isFor('track', bob), isFor('delete', ann)]).toEqual([true, false, false])
  await owner.units.stop()
  expect(isFor('track', ann)).toBe(false)
})
