import { expect, test } from 'vitest'
import { Board, type NoticeRecord } from '../../../src/notices/board.ts'
import { encodeReport } from '../../../src/notices/notice-record.ts'
import { PauseDecider } from '../../../src/notices/pause-decider.ts'
import { encodePause } from '../../../src/notices/pause-record.ts'
import { hour, minute } from './terms.ts'

test('however many destinations fail, each is paused after the time', () => {
  const board = new Board()
  const decider = new PauseDecider({ staleMs: 10 * minute, steadyMs: 5 * minute })
  const ids = Array.from({ length: 1_500 }, (_, n) => `crm-${n}`)
  const take = (record: Omit<NoticeRecord, 'offset'>, nowMs: number) =>
    board.take({ ...record, offset: board.position }, nowMs)
  const paused = new Set<string>()
  // In 15 minutes, after which a clock is renewed, a decider that looks so seldom writes 600 records.
  const everyMs = 5 * minute
  const crm = { state: 'on', hookIds: ['main'], urls: 'u1', autoPauseMs: 8 * hour } as const
  const situation = { isSound: true, destinationOf: () => crm }
  for (let nowMs = 50_000 * hour; nowMs < 50_010 * hour; nowMs += everyMs) {
    const hook = { hookId: 'main', sinceMs: nowMs - hour, lastFailedMs: nowMs, lastOutcome: 'timeout' }
    const failing = ids.map((destinationId) => ({ ...hook, destinationId }))
    take(encodeReport('w1', { failing, answered: [], counts: [] }), nowMs)
    for (const record of decider.decide(board, { nowMs, ...situation })) {
      take(encodePause(record), nowMs)
      if (record.kind === 'paused') paused.add(record.destinationId)
    }
  }
  expect(paused.size).toBe(ids.length)
})
