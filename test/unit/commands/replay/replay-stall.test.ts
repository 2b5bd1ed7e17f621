import { expect, test } from 'vitest'
import type { Job } from '../../../../src/replay/jobs.ts'
import { createStallWatch } from '../../../../src/commands/replay/replay.ts'

/** Returns a running replay whose owner has written its progress `note` times. */
function jobAt(offset: number, note: number): Job {
  return {
    order: {
      id: 'job-1',
      selection: { from: 'dead-letters' },
      perSecond: 50,
      by: 'ann',
      atMs: 0,
      ranges: [{ start: 0, end: 9 }],
    },
    wish: { state: 'run', by: 'ann', atMs: 0 },
    progress: {
      term: 1,
      note,
      owner: 'host:7:ab12cd',
      offsets: [offset],
      done: { records: offset, bytes: 0, leftOut: {} },
      atMs: 0,
      isOver: false,
    },
  }
}

test('a replay that stands still is told once for each stall, even if its owner tries on', () => {
  const said: string[] = []
  const look = createStallWatch((line) => said.push(line))
  look(jobAt(1, 0), 0)
  look(jobAt(2, 1), 29_999)
  look(jobAt(2, 2), 59_998)
  expect(said).toEqual([])
  look(jobAt(2, 3), 59_999)
  look(jobAt(2, 4), 100_000)
  expect(said).toEqual([expect.stringContaining('no progress for 30 s')])
  expect(said[0]).toContain('host:7:ab12cd')
  look(jobAt(3, 5), 101_000)
  look(jobAt(3, 6), 131_000)
  expect(said).toHaveLength(2)
})
