import { Analytics } from '@segment/analytics-node'
import type { TrackedMessage } from './messages.ts'

/** Segment's own client for Node. Only the gateway's URL, a write key and the flush interval are set. */
export type SegmentClient = {
  /** Sends a message. Resolves when the gateway has answered 200. Rejects when the client has given up. */
  send(message: TrackedMessage): Promise<void>
  /** Sends the messages that the client still holds, and closes the client. */
  close(): Promise<void>
}

/**
 * Time between two sends of the client. It is short, so that the table soon shows new messages. By default
 * the client sends every 10 s, and after 15 messages.
 */
const flushIntervalMs = 500
const closeTimeoutMs = 5_000

export function createSegmentClient(url: string, writeKey: string): SegmentClient {
  const client = new Analytics({ host: url, writeKey, flushInterval: flushIntervalMs })
  return {
    send({ type, timestamp, ...fields }) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a message has the fields of its kind
      const call = client[type].bind(client) as (message: object, done: (error?: unknown) => void) => void
      call({ ...fields, timestamp: new Date(timestamp) }, (error) => {
        if (error === undefined) resolve()
        else reject(new Error(`Segment's client could not send ${fields.messageId}`, { cause: error }))
      })
      return promise
    },
    close: () => client.closeAndFlush({ timeout: closeTimeoutMs }),
  }
}
