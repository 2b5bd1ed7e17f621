import type { Message } from 'kafkajs'
import { encodeRetryState } from '../../src/retry/retry-state.ts'
import { idCharacters, idMarker, userIdOf } from '../support/messages.ts'
import { destinationIdOf, sourceIdOf } from '../support/streams.ts'

const marker = Buffer.from(idMarker)
const numberDigits = 12

/** The values that all parked records of a run have in common. Times are in epoch milliseconds. */
export type Parking = {
  /** The number of destinations. The records go to them in turn. */
  destinations: number
  eventsTopic: string
  firstSeenMs: number
  expiresAtMs: number
}

/** Returns record `number` as a worker parks it after its first attempt. The body has about 230 bytes. */
export function parkedRecord(number: number, parking: Parking): Message {
  const { destinations, eventsTopic, firstSeenMs, expiresAtMs } = parking
  const messageId = `00000000-0000-4000-8000-${String(number).padStart(numberDigits, '0')}`
  const userId = userIdOf(number)
  const message = {
    type: 'track',
    messageId,
    userId,
    event: 'Order Completed',
    properties: { currency: 'EUR', order_id: `50314b8e9bcf${number}`, total: (number % 10_000) / 100 },
    timestamp: new Date(firstSeenMs).toISOString(),
    version: 1,
    context: {},
  }
  const headers = encodeRetryState({
    sourceId: sourceIdOf(number % destinations),
    destinationId: destinationIdOf(number % destinations),
    messageId,
    kind: 'track',
    nextRung: 1,
    attempts: 1,
    firstSeenMs,
    expiresAtMs,
    failedHooks: [],
    notBeforeMs: new Map(),
    lastOutcome: 'answered 503',
    origin: { topic: eventsTopic, partition: 0, offset: number },
  })
  return { key: userId, value: JSON.stringify(message), headers }
}

/** Returns the number of the message in a body. Returns NaN for a body without one. */
export function numberOf(body: Buffer): number {
  const at = body.indexOf(marker)
  if (at < 0) return Number.NaN
  const end = at + marker.length + idCharacters
  return Number(body.toString('latin1', end - numberDigits, end))
}
