import { partitionOf } from '../../src/message/partitioner.ts'

/**
 * Makes the messages of a simulation. They are numbered at each destination, so that the body of a request
 * identifies the message.
 */

const users = 1_000
const marker = Buffer.from('"messageId":"')
const digitZero = 0x30
const dash = 0x2d

/** Returns the number of the user of a message, and the key of the record. */
export function placeOf(destination: number, message: number): { key: Buffer; user: number } {
  const user = Math.imul(message + 1, 0x9e3779b1) + destination
  return { key: keys[(user >>> 0) % users] ?? noKey, user: (user >>> 0) % users }
}

const keys = Array.from({ length: users }, (_, user) => Buffer.from(`user-${user}`))
const noKey = Buffer.alloc(0)

export function partitionsOfUsers(partitions: number): readonly number[] {
  return keys.map((key) => partitionOf(key.toString(), partitions))
}

function messageIdOf(destination: number, message: number): string {
  return `${destination}-${message}`
}

/** Returns a Segment `track` call as the gateway writes it. */
export function messageText(destination: number, message: number, user: number): string {
  return `{"type":"track","messageId":"${messageIdOf(destination, message)}","userId":"user-${user}","event":"Order Completed","timestamp":"2026-01-01T00:00:00.000Z","version":1,"context":{"library":{"name":"analytics-node","version":"2.1.0"}},"properties":{"orderId":"50314b8e9bcf","total":25,"currency":"EUR","products":[{"sku":"G-32","price":12.5,"quantity":2}]}}`
}

/** Returns the number of the message in a body. Throws if the body has no message id. */
export function messageOf(body: Uint8Array): number {
  const bytes = body instanceof Buffer ? body : Buffer.from(body.buffer, body.byteOffset, body.length)
  const start = bytes.indexOf(marker)
  if (start < 0) throw new Error('the body has no messageId')
  let at = bytes.indexOf(dash, start + marker.length) + 1
  let message = 0
  for (let digit = digitOf(bytes, at); digit >= 0; digit = digitOf(bytes, ++at))
    message = message * 10 + digit
  return message
}

function digitOf(bytes: Buffer, at: number): number {
  const digit = (bytes[at] ?? 0) - digitZero
  return digit >= 0 && digit <= 9 ? digit : -1
}
