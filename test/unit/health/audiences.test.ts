import { expect, test } from 'vitest'
import { AudienceReporter } from '../../../src/health/audience-reporter.ts'
import { HealthBoard } from '../../../src/health/health-board.ts'
import { type AudienceWord, encodeHealth, type HealthRecord } from '../../../src/health/health-record.ts'

/** What processes tell of audiences, and what a reader makes of it. */

const nothing: AudienceWord = { spaces: [], firstSyncs: [], behind: [], untold: 0 }

function boardOf(...records: readonly HealthRecord[]): HealthBoard {
  const board = new HealthBoard()
  for (const [offset, record] of records.entries()) board.take({ offset, ...encodeHealth(record) }, 0)
  return board
}

const alive = (writer: string): HealthRecord => ({ kind: 'process', writer, word: { units: [0], of: 2 } })
const says = (writer: string, word: Partial<AudienceWord> | undefined): HealthRecord => ({
  kind: 'audiences',
  writer,
  word: word && { ...nothing, ...word },
})
const space = (values: Record<string, number>, atMs: number) => ({
  space: 'people',
  units: 1,
  atMs,
  values,
  more: 1,
})
const sync = (left: number, isWaiting: boolean) => ({ destination: 'crm', space: 'people', left, isWaiting })
const behind = [{ destination: 'erp', space: 'people' }]

test('counts and first syncs of all living processes are added up, and marks are the same for all', () => {
  const board = boardOf(
    alive('w1'),
    alive('w2'),
    says('w1', { spaces: [space({ vip: 3, loyal: 1 }, 5)], firstSyncs: [sync(10, true)], behind }),
    says('w2', { spaces: [space({ vip: 4 }, 9)], firstSyncs: [sync(2, false)], behind, untold: 7 }),
    says('gone', { spaces: [space({ vip: 100 }, 1)] }),
  )
  const { spaces, ...rest } = board.audiences(0)
  expect(rest).toEqual({ firstSyncs: [sync(12, false)], behind, untold: 7 })
  expect([...spaces.values()]).toEqual([
    {
      spaceId: 'people',
      units: 2,
      atMs: 5,
      values: new Map([
        ['vip', 7],
        ['loyal', 1],
      ]),
      otherValues: 2,
    },
  ])
  board.forgetDead(30_000)
  expect(board.audiences(30_000)).toEqual({ spaces: new Map(), firstSyncs: [], behind: [], untold: 0 })
})

test('what a process takes back, or what this version can not read, does not count', () => {
  const board = boardOf(alive('w1'), says('w1', { behind }), says('w1', undefined))
  expect(board.audiences(0).behind).toEqual([])
  const { key } = encodeHealth(says('w1', {}))
  board.take({ offset: 9, key, value: Buffer.from('{"spaces":1}') }, 0)
  expect(board.audiences(0).behind).toEqual([])
})

test('a word is written when it changes, not too often, and again before readers can miss it', () => {
  const reporter = new AudienceReporter('w1')
  const writes = (word: AudienceWord | undefined, nowMs: number) => reporter.report(word, nowMs).length
  expect(writes(undefined, 0)).toBe(0)
  expect(writes(nothing, 0)).toBe(1)
  expect(writes({ ...nothing, untold: 1 }, 5_000)).toBe(0)
  expect(writes({ ...nothing, untold: 1 }, 20_000)).toBe(1)
  expect(writes({ ...nothing, untold: 1 }, 300_000)).toBe(0)
  expect(writes({ ...nothing, untold: 1 }, 700_000)).toBe(1)
  // It may not have been written.
  reporter.forget()
  expect(writes({ ...nothing, untold: 1 }, 700_001)).toBe(1)
  expect(reporter.report(undefined, 700_002)).toEqual([{ kind: 'audiences', writer: 'w1', word: undefined }])
  expect(reporter.end()).toEqual([])
})
