import { expect, onTestFinished, test } from 'vitest'
import { partitionOf } from '../../../src/message/partitioner.ts'
import { partitions, topics, turns, usersOf } from './simulated-log.ts'
import { WholeWorld } from './whole-world.ts'

const [user = ''] = usersOf(0, 1)
const unit = partitionOf(user, partitions)

test('a value that is read again after a kill takes no place of a newer one that was pulled from its queue', async () => {
  const world = new WholeWorld({
    users: [user],
    audiences: ['lions'],
    destinations: 1,
    hasQueue: true,
    isCramped: false,
    isPrompt: true,
    maxInFlight: 1,
  })
  onTestFinished(() => world.stop())
  await world.member.owner.begin()
  const change = async (member: boolean): Promise<void> => {
    world.change(user, 'lions', member, 0, unit)
    await world.goOn()
    await turns()
  }
  const sent = (): string[] => world.customers.requestsOf(world.member).map(({ value }) => value)

  await change(true)
  expect(sent()).toEqual(['true'])
  world.paused.add('crm')
  await change(false)
  world.commit()
  await world.crash({ effects: ['late'], isWritten: [true], isDiskLost: true, isCommitLost: false })
  world.paused.clear()
  world.member.pipeline.refill('crm')
  await turns()
  expect(sent()).toEqual(['false'])
  // The killed owner had begun with the older value, and had not settled its record.
  world.member.owner.deliver(topics.states, unit)
  await turns()
  expect(sent()).toEqual(['false'])
  expect(world.seen).toContain('parked: uncertain')
  await world.finish(() => 1)
  expect(world.customers.applied.get(`crm ${user} space-lions`)).toBe('false')
  expect(world.faultsAtEnd()).toEqual([])
})
