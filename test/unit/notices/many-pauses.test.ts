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
  // Failure clocks are renewed every 15 minutes. A decider that decides only every 5 minutes writes 600
  // records in this time, which is fewer than the destinations.
  const everyMs = 5 * minute
  const contents = new Map<string, string>()
  const crm = { state: 'on', hookIds: ['main'], contents, urls: 'u1', autoPauseMs: 8 * hour } as const
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
