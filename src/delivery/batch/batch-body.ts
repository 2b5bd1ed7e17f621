import { hash } from 'node:crypto'
import type { Batch } from '../../catalog/features/batch.ts'

/** How the messages of a request are written: as a JSON array, or as lines of JSON. */
export type BatchFormat = Batch['format']

/** The `Content-Type` of requests with a batch. */
export const batchTypes: Readonly<Record<BatchFormat, string>> = {
  json: 'application/json',
  ndjson: 'application/x-ndjson',
}

const openingBracket = 0x5b
const closingBracket = 0x5d
const comma = 0x2c
const lineFeed = 0x0a

/** Returns the size of a batch in bytes. `bytes`: those of its messages together. */
export function batchBytes(format: BatchFormat, messages: number, bytes: number): number {
  return bytes + messages + (format === 'json' ? 1 : 0)
}

/**
 * Returns the body of a batch. The bytes of each message stay as they are. So a JSON array of canonical
 * messages equals `JSON.stringify(JSON.parse(body))`, as the body of a single message does.
 */
export function batchBody(format: BatchFormat, messages: readonly Uint8Array[]): Buffer {
  const bytes = messages.reduce((sum, { length }) => sum + length, 0)
  const body = Buffer.allocUnsafe(batchBytes(format, messages.length, bytes))
  let at = 0
  for (const message of messages) {
    if (format === 'json') body[at++] = at === 1 ? openingBracket : comma
    body.set(message, at)
    at += message.length
    if (format === 'ndjson') body[at++] = lineFeed
  }
  if (format === 'json') body[at] = closingBracket
  return body
}

/**
 * Returns the id of a batch, which `webhook-id` is. It is made from the ids of its messages in their order,
 * so that only a request with the same messages has the same id: a repeat of the batch.
 */
export function batchIdOf(messageIds: readonly string[]): string {
  return `batch_${hash('sha256', JSON.stringify(messageIds), 'base64url')}`
}
