import { type Logger, pino } from 'pino'
import { expect, test } from 'vitest'
import type { HeldRecord } from '../../../src/message/held-record.ts'
import type { Delivery } from '../../../src/pipeline/delivery.ts'
import { createWorkerMetrics } from '../../../src/telemetry/worker-metrics.ts'
import { createObserver } from '../../../src/telemetry/worker-observer.ts'

function listen(): { log: Logger; lines: () => object[] } {
  const written: string[] = []
  const log = pino({ base: null, timestamp: false }, { write: (line: string) => void written.push(line) })
  return { log, lines: () => written.map((line): object => JSON.parse(line)) }
}

/** Writes a thousand dead letters to the log: those of a paused destination, and one of another. */
function flood(logAttempts: boolean) {
  const { log, lines } = listen()
  const metrics = createWorkerMetrics({ perDestination: false })
  const observer = createObserver({ metrics, log, logAttempts, timeoutMs: 5_000, retryLimitMs: 1 })
  for (let offset = 0; offset < 1_000; offset++) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the observer reads no other fields
    const where = { topic: 'events', partition: 0, offset } as HeldRecord
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the observer reads no other fields
    const delivery = {
      destinationId: offset === 500 ? 'other' : 'paused',
      messageId: `m${offset}`,
    } as Delivery
    observer.deadLettered('auto_paused', 'Resume the destination.', where, delivery)
  }
  observer.flush()
  return lines()
}

test('an operator who wants no line for each attempt gets none for each message of a paused destination', () => {
  const lines = flood(false)
  expect(lines).toEqual([
    expect.objectContaining({ destination: 'paused', messageId: 'm0', msg: 'dead letter' }),
    expect.objectContaining({ destination: 'other', messageId: 'm500' }),
    expect.objectContaining({ destination: 'paused', messageId: 'm999', leftOut: 997 }),
  ])
})

test('with a line for each attempt, each dead letter has a line too', () => {
  expect(flood(true)).toHaveLength(1_000)
})
