import { MAX_MESSAGE_ID_CHARACTERS, type MessageKind } from './message-schemas.ts'

/** The place where a record was read. `timestampMs` is its append time, in milliseconds since 1970. */
export type Origin = { topic: string; partition: number; offset: number; timestampMs: number }

export type Entered = {
  type: MessageKind
  messageId: string
  /** True if the producer gave the `messageId`. Otherwise Sluice made it from the place of the record. */
  isIdGiven: boolean
  /** The members of `integrations` by which Sluice decides (`readIntegrations`). */
  integrations: Readonly<Record<string, unknown>> | undefined
  /**
   * The bytes that are signed and sent. They equal `JSON.stringify(JSON.parse(body))`, and must not be
   * changed.
   */
  body: Buffer
}

/**
 * Makes the `messageId` for a message that has none. The id is the same each time the record is read. If the
 * id is too long, only its end is kept, which contains the partition and the offset.
 */
export function madeMessageId({ topic, partition, offset }: Origin): string {
  return `${topic}-${partition}-${offset}`.slice(-MAX_MESSAGE_ID_CHARACTERS)
}
