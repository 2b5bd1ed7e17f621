import { expect, test } from 'vitest'
import { Board, type NoticeRecord } from '../../../src/notices/board.ts'
import { Decider } from '../../../src/notices/decider.ts'
import { encodeForgotten, encodeReport, encodeTold } from '../../../src/notices/notice-record.ts'
import { minute, terms } from './terms.ts'

const hook = { destinationId: 'crm', hookId: 'main' }

test('a hook that was removed from the catalog and comes back is as new: its failures and answers are forgotten', () => {
  const board = new Board()
  const decider = new Decider(terms)
  let nowMs = 100 * 60 * minute
  let isKnown = true
  const take = (record: Omit<NoticeRecord, 'offset'>): void =>
    board.take({ ...record, offset: board.position }, nowMs)
  const report = (given: object): void =>
    take(encodeReport('w1', { failing: [], answered: [], counts: [], ...given }))
  const fails = (): void =>
    report({ failing: [{ ...hook, sinceMs: nowMs, lastFailedMs: nowMs, lastOutcome: 'timeout' }] })
  const decide = (): readonly object[] => {
    nowMs += minute
    const { notices, forgotten } = decider.decide(board, {
      nowMs,
      behind: [],
      secrets: [],
      isKnown: () => isKnown,
    })
    for (const key of forgotten) take(encodeForgotten(key))
    for (const notice of notices) take(encodeTold({ notice, isSent: true }))
    return notices
  }

  decide()
  fails()
  expect(decide()).toMatchObject([{ kind: 'failing', times: 1 }])
  report({ answered: [{ ...hook, atMs: nowMs }] })
  expect([...decide(), ...decide()]).toMatchObject([{ kind: 'recovered' }])
  fails()
  expect(decide()).toEqual([])

  report({ answered: [{ ...hook, atMs: nowMs }] })
  isKnown = false
  decide()
  expect(board.answeredMs(hook)).toBe(0)
  isKnown = true
  nowMs += 30 * 24 * 60 * minute
  fails()
  expect(decide()).toMatchObject([{ kind: 'failing', times: 1 }])
})
