import { expect, test } from 'vitest'
import { DeliveryPort, GroupPort } from '../../../../src/roles/member/member-ports.ts'

/** A consumer that notes what it is told. */
function consumer() {
  const told: string[] = []
  return {
    told,
    isMember: true,
    partitions: [],
    checkInTouch: () => false,
    endSeenMs: () => 7,
    pulled: () => undefined,
    early: () => undefined,
    setFull: (isFull: boolean) => void told.push(`full ${isFull}`),
    setCongested: (isCongested: boolean) => void told.push(`congested ${isCongested}`),
    setPartitionFull: (topic: string, id: number, isFull: boolean, holder = '') =>
      void told.push(`${topic}/${id} ${isFull} ${holder}`),
  }
}

test('until the consumer starts, this process is no member, owns nothing, and may begin what it has', () => {
  const group = new GroupPort()
  group.setPartitionFull('events', 1, true)
  expect([group.isMember, group.checkInTouch(), group.endSeenMs('events', 1)]).toEqual([false, true, 0])
  expect([...group.partitions]).toEqual([])
})

test('a consumer that starts fetches nothing if the buffer is full already', () => {
  const group = new GroupPort()
  group.setFull(true)
  group.setCongested(true)
  group.setCongested(false)
  const started = consumer()
  group.connect(started)
  expect(started.told).toEqual(['full true', 'congested false'])
})

test('once the consumer has started, it is asked and told', () => {
  const group = new GroupPort()
  const started = consumer()
  expect(group.pulled('waiting', 1)).toBeUndefined()
  group.connect(started)
  started.told.length = 0
  group.setFull(true)
  group.setCongested(true)
  group.setPartitionFull('events', 1, true, 'produce')
  expect(started.told).toEqual(['full true', 'congested true', 'events/1 true produce'])
  expect([group.isMember, group.checkInTouch(), group.endSeenMs('events', 1)]).toEqual([true, false, 7])
})

test('audiences that deliver before the pipeline is there are a bug, and say so', () => {
  expect(() => new DeliveryPort().pipeline).toThrow('too early')
})
