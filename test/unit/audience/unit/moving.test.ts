import { afterEach, expect, test } from 'vitest'
import { movedFrom } from '../../../../src/audience/unit/moving.ts'
import { change } from '../producers.ts'
import { partitions, SimulatedLog, SimulatedOwner, topics, usersOf } from '../simulated-log.ts'

const owners: SimulatedOwner[] = []

afterEach(() => {
  for (const owner of owners.splice(0)) owner.kill(() => false)
})

const record = { topic: 'deletions' }

test('a record was moved from another place of its own topic', () => {
  const from = { topic: 'deletions', partition: 1, offset: 7 }
  expect(movedFrom(record, { origin: 'deletions/1/7' }, 4)).toEqual(from)
  expect(movedFrom(record, { origin: [Buffer.from('deletions/1/7'), 'x'] }, 4)).toEqual(from)
})

test.each([
  ['no header', {}],
  ['a null', { origin: null }],
  ['no place', { origin: 'here' }],
  ['a place in another topic', { origin: 'events/1/7' }],
  ['a partition that the topic does not have', { origin: 'deletions/4/7' }],
])('with %s as its origin it was not moved', (_what, headers) => {
  expect(movedFrom(record, headers, 4)).toBeUndefined()
})

test('a change in the wrong partition whose origin is forged is moved with its own place', async () => {
  const log = new SimulatedLog()
  const owner = new SimulatedOwner(log, { machine: 1 })
  owners.push(owner)
  await owner.begin()
  const [zoe = ''] = usersOf(1, 1)
  change(log, { user: zoe, partition: 0 })
  const [forged] = log.records(topics.changes, 0)
  for (const origin of ['events/1/9', `${topics.changes}/${partitions}/9`])
    log.append(topics.changes, 0, { ...forged, headers: { 'source-id': 'space', origin } })
  owner.deliver(topics.changes, 0)
  await owner.landAll()
  expect(log.records(topics.changes, 1).map(({ headers }) => headers?.['origin'])).toEqual(
    [0, 1, 2].map((offset) => `${topics.changes}/0/${offset}`),
  )
})
