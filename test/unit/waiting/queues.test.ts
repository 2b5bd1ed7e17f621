import { expect, onTestFinished, test } from 'vitest'
import { WaitingQueues } from '../../../src/waiting/queues.ts'
import { until } from '../../support/until.ts'

function unasked(): never {
  throw new Error('without a unit, nothing is read or written')
}

/** Queues of a member that has no unit. `group` says whether all members of the group have queues. */
function open(isOpen: boolean, group: { areAllNew: boolean }) {
  const said: string[] = []
  const say = (_fields: object, line: string) => void said.push(line)
  const queues = new WaitingQueues({
    topic: 'waiting',
    marksTopic: 'waiting-marks',
    reader: {
      range: unasked,
      ranges: async () => ({ topicId: undefined, ranges: new Map() }),
      topicId: unasked,
      hasDiverged: unasked,
      divergesAt: unasked,
      read: unasked,
      follow: unasked,
      readWhole: unasked,
      piece: unasked,
      stop: unasked,
    },
    producer: { produce: unasked, produceAt: unasked },
    group: { pulled: () => undefined, isReadByAll: () => group.areAllNew },
    take: unasked,
    expire: unasked,
    drop: unasked,
    maxAgeMs: () => Infinity,
    onWaiting: () => undefined,
    onReady: () => undefined,
    onLost: () => undefined,
    isOpen,
    cacheBytes: 1_000,
    log: { info: say, warn: say, error: say },
  })
  onTestFinished(() => queues.stop())
  return { queues, said }
}

test('nothing joins a queue while a member of the group has none, and the log says when that begins and ends', async () => {
  const group = { areAllNew: true }
  const { queues, said } = open(true, group)
  expect(queues.isOpen).toBe(true)
  group.areAllNew = false
  expect(queues.isOpen).toBe(false)
  await until('it is told', () => said.length > 0)
  group.areAllNew = true
  expect(queues.isOpen).toBe(true)
  await until('the end is told', () => said.length > 1)
  expect(said).toEqual([
    'workers without queues are in the consumer group: what waits for its turn goes to the retry topics until they have left',
    'all workers of the consumer group have queues: what waits for its turn joins them',
  ])
})

test('queues that are closed by a setting stay closed, whoever is in the group, and nothing is told', () => {
  const group = { areAllNew: false }
  const { queues, said } = open(false, group)
  group.areAllNew = true
  expect(queues.isOpen).toBe(false)
  expect(said).toEqual([])
})
