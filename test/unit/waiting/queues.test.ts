import { expect, onTestFinished, test } from 'vitest'
import type { WholeRecord } from '../../../src/message/records.ts'
import { WaitingQueues } from '../../../src/waiting/queues.ts'
import { until } from '../../support/until.ts'

function unasked(): never {
  throw new Error('without a unit, nothing is read or written')
}

type Options = ConstructorParameters<typeof WaitingQueues>[0]

/** Queues of a member. `group` says whether all members of the group have queues. */
function open(isOpen: boolean, group: { areAllNew: boolean }, unit: Partial<Options> = {}) {
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
    ...unit,
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

/** The unit 0, which an owner was killed in that had queued a message for `a` from `events/0/5`. */
function leftUnit(): Partial<Options> {
  const range = { start: 0, end: 1 }
  const record: WholeRecord = {
    offset: 0,
    key: null,
    value: Buffer.from('m5'),
    headers: { 'destination-id': 'a', 'message-id': 'm5', origin: 'events/0/5', queued: '1.a.b/1/fresh' },
    timestampMs: 0,
    leaderEpoch: 1,
  }
  const reader: Partial<Options['reader']> = {
    topicId: async () => 't',
    range: async () => range,
    ranges: async () => ({ topicId: 't', ranges: new Map([[0, range]]) }),
    async *readWhole({ topic }) {
      if (topic === 'waiting') yield [record]
    },
  }
  const partition: ReturnType<Options['group']['pulled']> = {
    found: { offset: 0, isForeign: false, topicId: 't', epoch: 1, otherFrom: Infinity },
    isBegun: true,
    isLost: false,
    isElsewhere: false,
    begunBelow: 0,
    committedOffset: 0,
    lend() {},
    giveBack() {},
    moveTo() {},
    isOtherFrom() {},
    isOtherLog() {},
  }
  return {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the queues use no other members
    reader: reader as Options['reader'],
    group: { pulled: () => partition, isReadByAll: () => true },
    producer: { produce: async () => 'acknowledged', produceAt: unasked },
  }
}

test('what a killed owner has queued is known until all that is read again is settled, also if it lines up after later ones', async () => {
  const { queues } = open(true, { areAllNew: true }, leftUnit())
  await queues.prepare(0)
  let isReadAgainOver = false
  const ask = (destinationId: string, offset: number): boolean => {
    const origin = { topic: 'events', partition: 0, offset }
    const record = { ...origin, isAbandoned: false, isReadAgain: offset < 8, isReadAgainOver }
    return queues.wasQueued({
      destinationId,
      messageId: `m${offset}`,
      origin,
      property: undefined,
      pending: { record },
    })
  }
  expect(ask('b', 8)).toBe(false)
  expect(ask('a', 5)).toBe(true)
  isReadAgainOver = true
  expect(ask('b', 9)).toBe(false)
  expect(ask('a', 5)).toBe(false)
})

test('nothing is pulled of a unit while no outcome of its deliveries can be written', async () => {
  const left = leftUnit()
  const taken: number[] = []
  const { queues } = open(
    true,
    { areAllNew: true },
    {
      ...left,
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the queues use no other members
      reader: { ...left.reader, piece: () => new Promise(() => undefined) } as unknown as Options['reader'],
      take: ({ offset }) => void taken.push(offset),
    },
  )
  queues.setUnitStopped(0, true)
  await queues.prepare(0)
  expect(queues.pull('a', 'fresh', 10)).toBe(0)
  queues.setUnitStopped(0, false)
  expect(queues.pull('a', 'fresh', 10)).toBe(1)
  expect(queues.countOf('a')).toBe(0)
  queues.setUnitStopped(0, true)
  expect([queues.wanted, queues.countOf('a'), taken]).toEqual([0, 1, []])
})
