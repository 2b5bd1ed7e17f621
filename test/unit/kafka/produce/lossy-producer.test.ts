import { Kafka } from 'kafkajs'
import { expect, onTestFinished, test } from 'vitest'
import { errorCodes } from '../../../../src/kafka/wire/error-codes.ts'
import {
  type LossyLinks,
  type LossyProducer,
  startLossyProducer,
} from '../../../../src/kafka/produce/lossy-producer.ts'
import type { ProduceOutcome } from '../../../../src/kafka/produce/produce-outcome.ts'
import type { PartitionRecords } from '../../../../src/message/records.ts'
import { soonest } from '../../../support/soonest.ts'
import { until } from '../../../support/until.ts'

const never = new Promise<never>(() => {})
const lost: ProduceOutcome = {
  isWritten: false,
  reason: 'no answer within 10000 ms',
  errorCode: undefined,
  isSent: true,
}

const leaderless: ProduceOutcome = {
  isWritten: false,
  reason: 'it has no leader',
  errorCode: errorCodes.LEADER_NOT_AVAILABLE,
  isSent: false,
}

/** Simulated brokers, with the texts that they have taken and the answers that they give. */
class Brokers {
  readonly leaders = new Map([
    [0, 1],
    [1, 1],
    [2, 2],
  ])
  readonly taken: string[] = []
  readonly hung = new Set<number>()
  /** True if no broker can be reached. */
  isSilent = false
  /** The number of sends while no broker can be reached. */
  tries = 0
  /** The answer of the leader of a partition, by partition. */
  readonly answers = new Map<number, (leader: number) => ProduceOutcome>()

  links(): LossyLinks {
    /** The leaders that the producer knows. */
    let known = new Map(this.leaders)
    const send: ReturnType<LossyLinks['on']>['send'] = async (batch, settle) => {
      if (this.isSilent) {
        this.tries++
        const outcome = {
          isWritten: false,
          reason: 'nobody answers',
          errorCode: undefined,
          isSent: false,
        } as const
        for (const item of batch) settle(item, outcome)
        return
      }
      const answers = batch.map(async (item) => {
        const leader = known.get(item.partition)
        if (leader !== undefined && this.hung.has(leader)) await never
        const outcome = leader === undefined ? leaderless : this.#answer(item, leader)
        if (!outcome.isWritten) known = new Map(this.leaders)
        settle(item, outcome)
      })
      await Promise.all(answers)
    }
    return { leadersOf: () => known, on: () => ({ send }), close: async () => undefined }
  }

  #answer(item: PartitionRecords, leader: number): ProduceOutcome {
    const outcome = this.answers.get(item.partition)?.(leader) ?? { isWritten: true, offset: 0 }
    if (outcome.isWritten) this.taken.push(...item.records.map(({ value }) => String(value)))
    return outcome
  }
}

function start(brokers: Brokers, maxBytes = 1_000) {
  const told = {
    written: 0,
    dropped: { full: 0, refused: 0, unknown: 0 },
    troubles: new Array<string | undefined>(),
  }
  const producer = startLossyProducer({
    kafka: new Kafka({ brokers: ['127.0.0.1:1'] }),
    topic: 'attempts',
    maxBytes,
    onWritten: (records) => void (told.written += records),
    onDropped: (records, why) => void (told.dropped[why] += records),
    onTrouble: (reason) => void told.troubles.push(reason),
    links: brokers.links(),
  })
  onTestFinished(() => producer.stop(0))
  return { producer, told }
}

function offer(producer: LossyProducer, partition: number, text: string, records = 1): void {
  producer.offer(partition, Buffer.from(text), records)
}

function unwritten(errorCode: number | undefined): () => ProduceOutcome {
  return () => ({ isWritten: false, reason: 'it said no', errorCode, isSent: true })
}

test('a leader that hangs holds up nothing that goes to others', async () => {
  const brokers = new Brokers()
  const { producer, told } = start(brokers)
  brokers.hung.add(2)
  offer(producer, 2, 'waits')
  for (const text of ['a', 'b', 'c']) {
    offer(producer, 0, text, 10)
    await until('it is written', () => brokers.taken.includes(text), { everyMs: 1 })
  }
  expect(told).toMatchObject({ written: 30, dropped: { full: 0, refused: 0, unknown: 0 } })
})

test('what waits for a leader that hangs leaves room for others', async () => {
  const brokers = new Brokers()
  const { producer, told } = start(brokers)
  offer(producer, 0, 'first')
  offer(producer, 2, 'first of the other')
  await until('both are written', () => brokers.taken.length === 2, { everyMs: 1 })
  brokers.hung.add(2)
  for (let nth = 0; nth < 100; nth++) offer(producer, 2, 'x'.repeat(20), 7)
  expect(told.dropped.full).toBeGreaterThan(0)
  expect(told.dropped.full % 7).toBe(0)
  expect(producer.isFull).toBe(false)
  const before = told.dropped.full
  offer(producer, 1, 'y'.repeat(100))
  await until('it is written', () => brokers.taken.includes('y'.repeat(100)), { everyMs: 1 })
  expect(told.dropped.full).toBe(before)
})

test('with one leader all the room is its own, and past it records are dropped and counted', async () => {
  const brokers = new Brokers()
  brokers.hung.add(1)
  const { producer, told } = start(brokers)
  for (let nth = 0; nth < 10; nth++) offer(producer, 0, 'x'.repeat(100), 3)
  expect([producer.isFull, told.dropped.full]).toEqual([true, 0])
  offer(producer, 0, 'one more', 3)
  expect(told.dropped.full).toBe(3)
})

test('a leader that moves is followed, and nothing is lost or comes twice', async () => {
  const brokers = new Brokers()
  const { producer, told } = start(brokers)
  brokers.answers.set(0, (leader) => {
    if (leader === 2) return { isWritten: true, offset: 0 }
    brokers.leaders.set(0, 2)
    return unwritten(errorCodes.LEADER_NOT_AVAILABLE)()
  })
  offer(producer, 0, 'moved', 4)
  offer(producer, 1, 'stays')
  await until('both are written', () => brokers.taken.length === 2, { everyMs: 1 })
  expect(brokers.taken.toSorted()).toEqual(['moved', 'stays'])
  expect(told).toMatchObject({ written: 5, dropped: { refused: 0, unknown: 0 } })
})

test('a partition that refuses for a moment loses nothing, though its leader takes what is of others', async () => {
  const brokers = new Brokers()
  const { producer, told } = start(brokers)
  const triedMs: number[] = []
  brokers.answers.set(0, () => {
    triedMs.push(performance.now())
    return triedMs.length < 4
      ? unwritten(errorCodes.NOT_LEADER_OR_FOLLOWER)()
      : { isWritten: true, offset: 0 }
  })
  const others = setInterval(() => offer(producer, 1, 'of another'), 5)
  onTestFinished(() => clearInterval(others))
  offer(producer, 0, 'refused at first')
  await until('it is written', () => brokers.taken.includes('refused at first'))
  const pausesMs = triedMs.slice(1).map((ms, nth) => ms - (triedMs[nth] ?? 0))
  for (const [nth, leastMs] of [250, 500, 1_000].entries())
    expect(pausesMs[nth]).toBeGreaterThanOrEqual(leastMs - 10)
  expect(told).toMatchObject({ dropped: { full: 0, refused: 0, unknown: 0 } })
})

test('a partition that refuses holds up no other one of its leader, though nothing else is sent with it', async () => {
  const brokers = new Brokers()
  const { producer } = start(brokers)
  let refused = 0
  brokers.answers.set(0, () => {
    refused++
    return unwritten(errorCodes.KAFKA_STORAGE_ERROR)()
  })
  // With a pause after each refusal, it would be 250 ms or more.
  const enoughMs = 125
  const refuseOne = async (): Promise<void> => {
    const before = refused
    offer(producer, 0, 'refused')
    await until('it is refused', () => refused > before, { everyMs: 1 })
  }
  let offered = 0
  const offerOther = async (): Promise<void> => {
    const text = `taken ${offered++}`
    offer(producer, 1, text)
    await until('the other is taken', () => brokers.taken.includes(text), { everyMs: 1 })
  }
  for (let times = 0; times < 3; times++)
    expect(await soonest(enoughMs, offerOther, { before: refuseOne })).toBeLessThan(enoughMs)
})

test('at the end what waits for its next try is dropped and counted', async () => {
  const brokers = new Brokers()
  const { producer, told } = start(brokers)
  brokers.answers.set(0, unwritten(errorCodes.NOT_LEADER_OR_FOLLOWER))
  offer(producer, 0, 'refused', 3)
  await until('it was refused', () => told.troubles.length > 0, { everyMs: 1 })
  await producer.stop(20)
  expect(told.dropped.refused).toBe(3)
})

test('what may have been written is not sent again, and is counted', async () => {
  const brokers = new Brokers()
  brokers.answers.set(0, () => lost)
  const { producer, told } = start(brokers)
  offer(producer, 0, 'lost', 6)
  await until('it is counted', () => told.dropped.unknown > 0, { everyMs: 1 })
  brokers.answers.delete(0)
  offer(producer, 0, 'next')
  await until('the next one is written', () => brokers.taken.length > 0)
  expect([brokers.taken, told.dropped.unknown]).toEqual([['next'], 6])
})

test('what is too large is sent once', async () => {
  const brokers = new Brokers()
  let sent = 0
  brokers.answers.set(0, () => {
    sent++
    return unwritten(errorCodes.MESSAGE_TOO_LARGE)()
  })
  const { producer, told } = start(brokers)
  offer(producer, 0, 'large', 5)
  await until('it is counted', () => told.dropped.refused === 5, { everyMs: 1 })
  expect(sent).toBe(1)
})

test('of a partition without a leader records are dropped after some tries', async () => {
  const brokers = new Brokers()
  const { producer, told } = start(brokers)
  offer(producer, 7, 'for nobody', 2)
  offer(producer, 0, 'for somebody')
  await until('it is counted', () => told.dropped.refused === 2)
  expect(brokers.taken).toEqual(['for somebody'])
})

test('while nobody tells about the cluster all waits, and is written then', async () => {
  const brokers = new Brokers()
  brokers.isSilent = true
  const { producer, told } = start(brokers)
  offer(producer, 0, 'waits')
  await until('it was tried twice', () => brokers.tries >= 2)
  brokers.isSilent = false
  await until('it is written', () => brokers.taken.length === 1)
  expect(told).toMatchObject({ written: 1, dropped: { full: 0, refused: 0, unknown: 0 } })
  expect(told.troubles).toEqual(['nobody answers', undefined])
})

test('trouble is told once, though others are written meanwhile, and its end once', async () => {
  const brokers = new Brokers()
  const { producer, told } = start(brokers)
  brokers.answers.set(2, () => lost)
  for (let nth = 0; nth < 3; nth++) {
    offer(producer, 2, 'lost')
    offer(producer, 0, `fine ${nth}`)
    await until('both have an outcome', () => told.written > nth && told.dropped.unknown > nth)
  }
  expect(told.troubles).toEqual(['no answer within 10000 ms'])
  brokers.answers.delete(2)
  offer(producer, 2, 'written')
  await until('the end is told', () => told.troubles.length === 2)
  expect(told.troubles[1]).toBeUndefined()
})

test('at the end all is written, or dropped and counted', async () => {
  const brokers = new Brokers()
  const { producer, told } = start(brokers)
  offer(producer, 0, 'a', 2)
  await producer.stop(5_000)
  expect(told.written).toBe(2)
  offer(producer, 0, 'too late', 3)
  expect(told.dropped.full).toBe(3)
  const silent = new Brokers()
  silent.isSilent = true
  const other = start(silent)
  offer(other.producer, 0, 'a', 4)
  await other.producer.stop(20)
  expect(other.told.dropped.full).toBe(4)
})
