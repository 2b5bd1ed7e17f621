import { expect, test } from 'vitest'
import { LinesForPeople } from '../../../src/telemetry/lines-for-people.ts'

/** Returns the lines without their times, which are local. */
function linesOf(...entries: readonly object[]): readonly string[] {
  const written: string[] = []
  const lines = new LinesForPeople({ write: (text) => written.push(text) }, { hasColours: false })
  lines.write(
    entries.map((entry) => `${JSON.stringify({ time: '2026-07-29T09:30:00.000Z', ...entry })}\n`).join(''),
  )
  return written.map((line) => line.replace(/^\d\d:\d\d:\d\d /, '').trimEnd())
}

const attempt = {
  level: 'info',
  destination: 'crm',
  hook: '03d3984b',
  messageId: 'order-4711',
  type: 'track',
  attempt: 1,
  durationMs: 12.3,
  msg: 'attempt',
}

test('an attempt says who answered what, how fast, and to which message', () => {
  expect(
    linesOf(
      { ...attempt, verdict: 'delivered', outcome: 'answer', status: 200 },
      { ...attempt, verdict: 'failed', outcome: 'answer', status: 503, attempt: 3 },
      { ...attempt, verdict: 'failed', outcome: 'connection', code: 'ECONNREFUSED', level: 'warn' },
      { ...attempt, verdict: 'failed', outcome: 'timeout', level: 'error' },
    ),
  ).toEqual([
    '→ crm 200 in 12.3 ms  track order-4711',
    '✗ crm 503 in 12.3 ms, attempt 3  track order-4711',
    '✗ crm ECONNREFUSED in 12.3 ms  track order-4711',
    '✗ crm timeout in 12.3 ms  track order-4711',
  ])
})

test('a failing attempt says which host failed, and a line says when it is tried again', () => {
  const host = 'https://crm.example:8443'
  const at = new Date('2026-07-29T09:31:00.000Z')
  const clock = [at.getHours(), at.getMinutes(), 0].map((part) => String(part).padStart(2, '0')).join(':')
  const { destination, messageId, type } = attempt
  expect(
    linesOf(
      { ...attempt, host, verdict: 'retry', outcome: 'answer', status: 503, level: 'warn' },
      {
        destination,
        messageId,
        type,
        attempt: 1,
        nextInMs: 60_000,
        nextAt: at,
        level: 'info',
        msg: 'next try',
      },
    ),
  ).toEqual([
    '✗ crm 503 from https://crm.example:8443 in 12.3 ms  track order-4711',
    `↻ crm is tried again at ${clock}, in 60 s  track order-4711`,
  ])
})

test('other lines begin with their message, and name all fields', () => {
  expect(
    linesOf(
      { level: 'info', msg: 'gateway started', port: 9400, by: ['root'] },
      { level: 'warn', msg: 'the catalog has no destinations' },
    ),
  ).toEqual(['gateway started  port=9400 by=["root"]', 'warn the catalog has no destinations'])
})

test('what strangers write makes no line of its own, and moves no cursor', () => {
  const [line = '', ...more] = linesOf({
    ...attempt,
    verdict: 'delivered',
    status: 200,
    messageId: 'a\n\u001b[2Jb\u202ec',
  })
  expect(line).toBe(String.raw`→ crm 200 in 12.3 ms  track a\n\u001b[2Jb\u202ec`)
  expect(more).toEqual([])
})

test('a long field is cut, and a line that is no JSON stays', () => {
  const [line = ''] = linesOf({ level: 'info', msg: 'm', value: 'x'.repeat(1_000) })
  expect(line.length).toBeLessThan(250)
  const written: string[] = []
  new LinesForPeople({ write: (text) => written.push(text) }, { hasColours: true }).write('no JSON\n')
  expect(written).toEqual(['no JSON\n'])
})
