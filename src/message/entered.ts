import { MAX_MESSAGE_ID_CHARACTERS, type MessageKind } from './message-schemas.ts'

/** Where a record was read. `timestampMs` is its append time, milliseconds since 1970. */
export type Origin = { topic: string; partition: number; offset: number; timestampMs: number }

export type Entered = {
  type: MessageKind
  messageId: string
  /** The producer has given the `messageId`; else it is of this one record. */
  isIdGiven: boolean
  integrations: Readonly<Record<string, unknown>> | undefined
  /** What is signed and sent: equal to `JSON.stringify(JSON.parse(body))`, and untouched from here on. */
  body: Buffer
}

/**
 * The same for each reading of a record. Of an over-long one the end is kept: partition and offset are there.
 */
export function madeMessageId({ topic, partition, offset }: Origin): string {
  return `${topic}-${partition}-${offset}`.slice(-MAX_MESSAGE_ID_CHARACTERS)
}
