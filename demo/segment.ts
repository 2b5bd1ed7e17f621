import { Analytics } from '@segment/analytics-node'
import type { TrackedMessage } from './messages.ts'

/** Segment's own client for Node, told the URL of the gateway and a write key, and nothing else that matters. */
export type SegmentClient = {
  /** Resolves when the gateway has answered 200 for it, and rejects when the client has given up. */
  send(message: TrackedMessage): Promise<void>
  /** Sends what it still has. */
  close(): Promise<void>
}

/** So that the table shows soon what was sent; by default it sends every 10 s, and after 15 messages. */
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
