import { expect, test } from 'vitest'
import { HealthBoard } from '../../../../src/health/health-board.ts'
import { encodeHealth, type HealthRecord } from '../../../../src/health/health-record.ts'
import { replayBacklog, replayRemainder } from '../../../../src/roles/member/replay-remainder.ts'

/** What one worker tells, and how far the group is in `replays`. */
class Group {
  readonly board = new HealthBoard()
  isTold = true
  end = 300
  committed = 0
  readonly options = {
    topic: 'replays',
    lag: {
      read: async () => ({
        lag: new Map([['replays', this.end - this.committed]]),
        failures: new Map(),
        partitions: 1,
      }),
      endsOf: async () => new Map([[0, this.end]]),
      behind: async (_topic: string, ends: ReadonlyMap<number, number>) =>
        Math.max(0, (ends.get(0) ?? 0) - this.committed),
    },
    health: { read: async () => (this.isTold ? this.board : undefined) },
    catalog: () => ({
      destinations: new Map([
        ['crm', { state: 'on' }],
        ['erp', { state: 'paused' }],
      ]),
    }),
    now: () => 0,
  }

  tell(replayed: Readonly<Record<string, number>>): void {
    const words = Object.entries(replayed).map(([destinationId, count]): HealthRecord => {
      const word = { waiting: { messages: count, replayed: count } }
      return { kind: 'destination', destinationId, writer: 'w', word }
    })
    const process: HealthRecord = { kind: 'process', writer: 'w', word: { units: [0], of: 1 } }
    for (const record of [...words, process])
      this.board.take({ offset: this.board.position, ...encodeHealth(record) }, 0)
  }
}

const { signal } = new AbortController()
const written = { records: 300, destinationIds: new Set(['crm']) }

test('records of a replay have left the topic `replays`, and then the queues, before none of them is left', async () => {
  const group = new Group()
  group.tell({})
  const remainder = replayRemainder(group.options, written)
  expect(await remainder.left(signal)).toBe(300)
  // Another replay writes on.
  group.end = 500
  group.committed = 200
  // This may have been told before the records left the topic, so it lacks some of them.
  expect(await remainder.left(signal)).toBe(300)
  group.tell({ crm: 150, erp: 7 })
  expect(await remainder.left(signal)).toBe(300)
  group.tell({ crm: 150, erp: 7 })
  expect(await remainder.left(signal)).toBe(250)
  group.committed = 300
  group.tell({ crm: 120 })
  expect(await remainder.left(signal)).toBe(220)
  group.tell({ crm: 169, erp: 7 })
  expect(await remainder.left(signal)).toBe(169)
  group.tell({ crm: 0, erp: 7 })
  expect(await remainder.left(signal)).toBe(0)
})

test('if it is not known for whom the records were, those that are paused do not count', async () => {
  const group = new Group()
  group.committed = 300
  const remainder = replayRemainder(group.options, { records: 300, destinationIds: undefined })
  group.tell({ crm: 5, erp: 7 })
  expect(await remainder.left(signal)).toBe(300)
  group.tell({ crm: 5, erp: 7 })
  expect(await remainder.left(signal)).toBe(5)
})

test('where nobody tells what waits, a replay is done when its records have left the topic `replays`', async () => {
  const group = new Group()
  group.isTold = false
  const remainder = replayRemainder(group.options, written)
  group.committed = 299
  expect(await remainder.left(signal)).toBe(1)
  group.committed = 300
  expect(await remainder.left(signal)).toBe(0)
})

test('what waits for its destination holds a replay back, and not what waits for others', async () => {
  const group = new Group()
  group.committed = 290
  group.tell({ crm: 5_000, erp: 7 })
  expect(await replayBacklog(group.options, 'crm')).toBe(5_010)
  expect(await replayBacklog(group.options, 'erp')).toBe(17)
  // A replay to many destinations isn't held back by one that is paused.
  expect(await replayBacklog(group.options, undefined)).toBe(5_010)
})
