import * as fc from 'fast-check'
import { type Logger, pino } from 'pino'
import { expect, test } from 'vitest'
import {
  type AttemptLine,
  createAttemptLog,
  createDeliveredLog,
} from '../../../src/telemetry/attempt-line.ts'

/** Returns a logger as `createLogger` makes it, and the lines that it has written. */
function listen(level = 'info'): { log: Logger; lines: string[] } {
  const lines: string[] = []
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime }
  const formatters = { level: (label: string) => ({ level: label }) }
  return { log: pino({ ...options, formatters }, { write: (line: string) => void lines.push(line) }), lines }
}

const attempt: AttemptLine = {
  destination: 'crm',
  hook: 'main',
  messageId: '1',
  type: 'track',
  attempt: 1,
  status: 200,
  durationMs: 12.5,
  replayJob: '',
}

/** Returns the members of a line without its time, because no two lines share a time. */
function withoutTime(line: string | undefined): object {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the next line checks the time
  const { time, ...rest } = JSON.parse(line ?? '') as { time: string }
  expect(new Date(time).toISOString()).toBe(time)
  return rest
}

test('the line is the one that pino writes of the same members', () => {
  const anyText = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }))
  fc.assert(
    fc.property(
      anyText,
      anyText,
      fc.nat(),
      fc.nat(999),
      fc.nat(60_000),
      fc.constantFrom(undefined, '0af7651916cd43dd8448eb211c80319c'),
      (messageId, type, tries, status, tenths, traceId) => {
        const { log, lines } = listen()
        const line = { ...attempt, messageId, type, attempt: tries, status, durationMs: tenths / 10, traceId }
        createDeliveredLog(log)(line)
        const { durationMs, status: code, traceId: _traceId, replayJob: _none, ...before } = line
        log.info(
          { ...before, verdict: 'delivered', outcome: 'answer', status: code, durationMs, traceId },
          'attempt',
        )
        const [ours, theirs] = lines
        expect(ours?.endsWith('}\n')).toBe(true)
        expect(withoutTime(ours)).toEqual(withoutTime(theirs))
        expect(Object.keys(withoutTime(ours))).toEqual(Object.keys(withoutTime(theirs)))
      },
    ),
    { numRuns: 1_000 },
  )
})

test('a line has its own members, whatever it shares with the line before', () => {
  const { log, lines } = listen()
  const write = createDeliveredLog(log)
  const others: Partial<AttemptLine>[] = [
    {},
    { destination: 'shop' },
    { hook: 'second' },
    { messageId: '2' },
    { type: 'page' },
    { attempt: 2 },
    { status: 204 },
    { durationMs: 3 },
    { traceId: '0af7651916cd43dd8448eb211c80319c' },
    { replayJob: '20260723-101500-3f9a2c' },
  ]
  // Each comes after the usual line, and before it.
  const all = others.flatMap((other) => [{ ...attempt, ...other }, attempt])
  for (const line of all) write(line)
  expect(lines.map(withoutTime)).toEqual(
    all.map(({ replayJob, ...members }) => ({
      level: 'info',
      ...members,
      ...(replayJob !== '' && { replay: replayJob }),
      verdict: 'delivered',
      outcome: 'answer',
      msg: 'attempt',
    })),
  )
})

test('what a child logger says of itself is in the line', () => {
  const { log, lines } = listen()
  createDeliveredLog(log.child({ process: 2 }))(attempt)
  expect(withoutTime(lines[0])).toMatchObject({ process: 2, destination: 'crm', verdict: 'delivered' })
})

test('nothing is written where the level is above info', () => {
  const { log, lines } = listen('warn')
  createDeliveredLog(log)(attempt)
  expect(lines).toEqual([])
})

test('the replay that a delivery came by is told', () => {
  const { log, lines } = listen()
  createDeliveredLog(log)({ ...attempt, replayJob: '20260723-101500-3f9a2c' })
  expect(withoutTime(lines[0])).toMatchObject({ replay: '20260723-101500-3f9a2c', durationMs: 12.5 })
})

const delivery = {
  destinationId: 'crm',
  messageId: '1',
  kind: 'track',
  attempts: 1,
  trace: undefined,
  replayJob: '',
} as const

test('a failing attempt says which host failed, without the path, which may have a secret', () => {
  const { log, lines } = listen()
  const hooks = [{ id: 'main', target: { origin: 'https://crm.example:8443', path: '/hook?key=1' } }]
  const result = {
    hookId: 'main',
    outcome: { kind: 'connection', code: 'ECONNREFUSED' },
    verdict: { kind: 'retry', afterMs: 0 },
    mayHaveArrived: false,
  } as const
  const attempts = createAttemptLog({ log, logAttempts: true, timeoutMs: 5_000 })
  attempts.add({ ...delivery, endpoint: { hooks } }, result, 1)
  expect(withoutTime(lines[0])).toMatchObject({ hook: 'main', host: 'https://crm.example:8443' })
  expect(lines[0]).not.toContain('key=1')
})

test('an attempt without an answer says why', () => {
  const { log, lines } = listen()
  const attempts = createAttemptLog({ log, logAttempts: true, timeoutMs: 5_000 })
  const verdict = { kind: 'retry', afterMs: 0 } as const
  const outcomes = [{ kind: 'timeout' }, { kind: 'proxy', code: 'ECONNREFUSED', isDown: true }] as const
  for (const outcome of outcomes)
    attempts.add(delivery, { hookId: 'main', outcome, verdict, mayHaveArrived: false }, 1)
  expect(lines.map((line) => withoutTime(line))).toMatchObject([
    { level: 'error', msg: expect.stringMatching(/^timeout: no response within \d+ ms$/) },
    { level: 'warn', msg: 'the proxy failed: no request was sent' },
  ])
})

test('a kept answer is not logged', () => {
  const { log, lines } = listen()
  const body = Buffer.from('no such user: ann@example.com')
  createAttemptLog({ log, logAttempts: true, timeoutMs: 5_000 }).add(
    delivery,
    {
      hookId: 'main',
      outcome: { kind: 'answer', status: 429, retryAfterMs: 1_000, body },
      verdict: { kind: 'retry', afterMs: 1_000 },
      mayHaveArrived: false,
    },
    12.5,
  )
  expect(withoutTime(lines[0])).toEqual({
    level: 'warn',
    destination: 'crm',
    hook: 'main',
    messageId: '1',
    type: 'track',
    attempt: 1,
    verdict: 'retry',
    outcome: 'answer',
    status: 429,
    retryAfterMs: 1_000,
    durationMs: 12.5,
    msg: 'attempt',
  })
})
