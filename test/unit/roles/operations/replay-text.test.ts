import { expect, test } from 'vitest'
import type { Job } from '../../../../src/replay/jobs.ts'
import { auditLine, jobLines, jobTable, previewLines } from '../../../../src/roles/operations/replay-text.ts'

const hostile = '\u001b[2Jm\r\nreplay   another\u009b1m'
const tally = { records: 1, bytes: 10, leftOut: {} }
const selection = { from: 'dead-letters', messageId: hostile } as const
const job: Job = {
  order: { id: '20260723-151500-3f9a2c', selection, perSecond: 10, by: hostile, atMs: 0, ranges: [] },
  wish: { state: 'stop', by: hostile, atMs: 0, detail: hostile },
  progress: undefined,
}

test('a terminal gets no control characters of what senders and askers wrote', () => {
  const groups = [{ destinationId: hostile, reason: hostile, records: 1, bytes: 10 }]
  const entry = {
    atMs: 0,
    by: hostile,
    action: 'created',
    job: job.order.id,
    detail: hostile,
    place: 1,
    count: 2,
    lastMs: 1,
  } as const
  const lines = [
    ...previewLines({ selection, ranges: [], tally, groups, isAgain: false, isComplete: true }),
    ...jobLines(job),
    ...jobTable([job]),
    auditLine(entry),
  ]
  expect(lines.join('\n')).toContain('dead letters with messageId ?[2Jm??replay   another?1m')
  for (const line of lines) expect(line).not.toMatch(/\p{Cc}/u)
})
