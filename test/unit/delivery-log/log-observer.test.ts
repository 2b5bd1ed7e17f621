import { expect, test } from 'vitest'
import { BlockReader, readBlock } from '../../../src/delivery-log/block-reader.ts'
import { createLogObserver, type LogObserver } from '../../../src/delivery-log/log-observer.ts'
import type { LogRecord } from '../../../src/delivery-log/log-record.ts'
import type { HookResult } from '../../../src/pipeline/decision.ts'
import type { HeldRecord } from '../../../src/message/held-record.ts'
import type { Delivery } from '../../../src/pipeline/delivery.ts'

const nowMs = 1_700_000_000_000
const held: HeldRecord = {
  topic: 'events',
  partition: 3,
  offset: 70,
  timestampMs: nowMs - 500,
  isLate: false,
  isAbandoned: false,
  settle() {},
  giveBack() {},
}

/** Returns a delivery with the fields that the log reads. */
function deliveryOf(given: Partial<Delivery> = {}): Delivery {
  const read = {
    destinationId: 'crm',
    sourceId: 'shop',
    messageId: 'm1',
    kind: 'track',
    key: Buffer.from('user-1'),
    origin: { topic: 'events', partition: 3, offset: 70 },
    pending: { record: held },
    attempts: 1,
    firstSeenMs: nowMs - 500,
    laneClass: 'fresh',
    isInLog: false,
    replayJob: '',
    ...given,
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the log reads no other fields
  return read as unknown as Delivery
}

function resultOf(verdict: 'delivered' | 'retry' | 'final', status: number): HookResult {
  const outcome = { kind: 'answer', status }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the log reads no other fields
  return { hookId: 'main', verdict: { kind: verdict }, outcome } as unknown as HookResult
}

/**
 * Returns the records that the observer writes while `work` calls it, and the number of records that it
 * drops.
 */
function written(
  work: (observer: LogObserver) => void,
  options: { isFull?: () => boolean; successesPerSecond?: number } = {},
): { records: LogRecord[]; dropped: number } {
  const records: LogRecord[] = []
  let dropped = 0
  const observer = createLogObserver({
    outlet: {
      get isFull() {
        return options.isFull?.() ?? false
      },
      offer: (unit, block) => void records.push(...readBlock(block, unit)),
    },
    successesPerSecond: options.successesPerSecond ?? 100,
    hashUser: () => 'abcdef',
    onDropped: (count) => void (dropped += count),
    now: () => nowMs,
  })
  work(observer)
  observer.finish()
  return { records, dropped }
}

const about = {
  atMs: nowMs,
  destination: 'crm',
  source: 'shop',
  messageId: 'm1',
  messageType: 'track',
  origin: { topic: 'events', partition: 3, offset: 70 },
  unit: 3,
  weight: 1,
}

test.each(['superseded', 'suppressed'] as const)('a delivery that is dropped ends as %s', (why) => {
  const { records } = written((observer) => observer.dropped(deliveryOf({ attempts: 0 }), why))
  expect(records).toEqual([
    expect.objectContaining({
      ...about,
      kind: why,
      isEnd: true,
      reason: '',
      attempt: 0,
      user: '616263646566',
    }),
  ])
})

test('a hook that never gets a message has a record with the reason, and its delivery goes on', () => {
  const { records } = written((observer) => observer.omitted(deliveryOf(), 'backup', 'skipped'))
  expect(records).toEqual([
    expect.objectContaining({ ...about, kind: 'omitted', isEnd: false, hook: 'backup', reason: 'skipped' }),
  ])
})

test('the end of a delivery is told by its attempt, where that was written last', () => {
  const delivery = deliveryOf()
  const { records } = written((observer) => {
    observer.attempted(delivery, resultOf('delivered', 204), 12.5)
    observer.delivered(delivery)
  })
  expect(records).toEqual([
    expect.objectContaining({ ...about, kind: 'attempted', isEnd: true, status: 204, durationMs: 12.5 }),
  ])
})

test('a delivery whose last attempt had no success has an end of its own', () => {
  const delivery = deliveryOf()
  const { records } = written((observer) => {
    observer.attempted(delivery, resultOf('delivered', 200), 1)
    // The other hook of the delivery answers later.
    observer.attempted(delivery, resultOf('final', 400), 2)
    observer.attempted(deliveryOf({ messageId: 'm2' }), resultOf('retry', 503), 3)
    observer.delivered(delivery)
  })
  expect(records.map(({ kind, isEnd, messageId }) => [kind, isEnd, messageId])).toEqual([
    ['attempted', false, 'm1'],
    ['attempted', false, 'm1'],
    ['attempted', false, 'm2'],
    ['delivered', true, 'm1'],
  ])
})

test('a delivery that has no record of its own has no end either', () => {
  const delivery = deliveryOf()
  expect(written((observer) => observer.delivered(delivery)).records).toEqual([])
})

test('a dead letter that is no delivery is told by its record', () => {
  const { records } = written((observer) => observer.deadLettered('not_json', 'it is none', held, undefined))
  expect(records).toEqual([
    expect.objectContaining({
      ...about,
      kind: 'dead',
      isEnd: true,
      reason: 'not_json',
      destination: '',
      source: '',
      messageId: '',
      messageType: '',
      user: '',
    }),
  ])
})

test.each(['destination_off', 'filtered_by_integrations', 'filtered_by_destination'] as const)(
  'a destination that does not get a message since it is %s has a record',
  (reason) => {
    const message = { destinationId: 'crm', sourceId: 'shop', messageId: 'm1', kind: 'track' }
    const { records } = written((observer) => observer.filtered(reason, message, held))
    expect(records).toEqual([expect.objectContaining({ ...about, kind: 'filtered', isEnd: true, reason })])
  },
)

test('of many filtered messages only some have a record, and their weights count all of them', () => {
  const message = { destinationId: 'crm', sourceId: 'shop', messageId: 'm1', kind: 'track' }
  const { records } = written(
    (observer) => {
      for (let nth = 0; nth < 555; nth++) observer.filtered('destination_off', message, held)
    },
    { successesPerSecond: 2 },
  )
  expect(records.length).toBeLessThan(20)
  expect(records.map(({ kind, reason }) => `${kind} ${reason}`)).toEqual(
    records.map(() => 'filtered destination_off'),
  )
  expect(records.reduce((sum, { weight }) => sum + weight, 0)).toBe(555)
})

test('a record of a replay names it, and each success of a replay has its record', () => {
  const { records } = written(
    (observer) => {
      for (let nth = 0; nth < 50; nth++) {
        const delivery = deliveryOf({ replayJob: 'job-1' })
        observer.attempted(delivery, resultOf('delivered', 200), 1)
        observer.delivered(delivery)
      }
    },
    { successesPerSecond: 1 },
  )
  expect(records).toHaveLength(50)
  expect(new Set(records.map(({ job }) => job))).toEqual(new Set(['job-1']))
})

test('a failure always has a record, and so has the success behind it', () => {
  const { records } = written(
    (observer) => {
      for (let nth = 0; nth < 50; nth++) {
        const delivery = deliveryOf()
        observer.attempted(delivery, resultOf('retry', 503), 1)
        observer.attempted(delivery, resultOf('delivered', 200), 1)
        observer.delivered(delivery)
      }
    },
    { successesPerSecond: 1 },
  )
  expect(records.map(({ isEnd }) => isEnd)).toEqual(Array.from({ length: 100 }, (_, nth) => nth % 2 === 1))
})

test('where there is no room records are dropped and counted one by one, whatever they stand for', () => {
  let isFull = false
  const { records, dropped } = written(
    (observer) => {
      for (let nth = 0; nth < 100; nth++) observer.attempted(deliveryOf(), resultOf('delivered', 200), 1)
      isFull = true
      // After these, the record of a success stands for more than one success.
      for (let nth = 0; nth < 100; nth++) observer.attempted(deliveryOf(), resultOf('delivered', 200), 1)
      observer.deadLettered('expired', '', held, deliveryOf())
      isFull = false
    },
    { isFull: () => isFull, successesPerSecond: 10 },
  )
  const every = written(
    (observer) => {
      for (let nth = 0; nth < 200; nth++) observer.attempted(deliveryOf(), resultOf('delivered', 200), 1)
      observer.deadLettered('expired', '', held, deliveryOf())
    },
    { successesPerSecond: 10 },
  )
  expect(records.length + dropped).toBe(every.records.length)
  expect(dropped).toBeGreaterThan(1)
})

test('a block that has grown is given away at once, and the end of its delivery has a record of its own', () => {
  const records: LogRecord[] = []
  const observer = createLogObserver({
    outlet: { isFull: false, offer: (unit, block) => void records.push(...readBlock(block, unit)) },
    successesPerSecond: 100,
    onDropped: () => undefined,
    now: () => nowMs,
  })
  const delivery = deliveryOf({ messageId: 'x'.repeat(1_000) })
  for (let nth = 0; records.length === 0 && nth < 100; nth++)
    observer.attempted(delivery, resultOf('retry', 503), 1)
  expect(records.map(({ isEnd }) => isEnd)).toEqual(records.map(() => false))
  records.length = 0
  observer.delivered(delivery)
  observer.flush()
  expect(records.map(({ kind, isEnd }) => [kind, isEnd])).toEqual([['delivered', true]])
})

test('records have the hashes of the values of their message, and those of no other', () => {
  const blocks: Buffer[] = []
  const observer = createLogObserver({
    outlet: { isFull: false, offer: (_unit, block) => void blocks.push(block) },
    successesPerSecond: 100,
    valuesOf: (body) => (body.includes('4711') ? 'abcdef' : ''),
    onDropped: () => undefined,
    now: () => nowMs,
  })
  observer.attempted(deliveryOf({ body: Buffer.from('{"a":1}') }), resultOf('retry', 503), 5)
  observer.attempted(deliveryOf({ body: Buffer.from('{"a":4711}') }), resultOf('retry', 503), 5)
  observer.filtered(
    'filtered_by_destination',
    { destinationId: 'crm', sourceId: 'shop', messageId: 'm2', kind: 'track', body: Buffer.from('4711') },
    held,
  )
  observer.finish()
  const reader = new BlockReader()
  const read: string[] = []
  for (const block of blocks)
    for (reader.open(block); reader.next();)
      read.push(reader.bytes.toString('latin1', reader.valuesAt, reader.valuesEnd))
  expect(read).toEqual(['', 'abcdef', 'abcdef'])
})
