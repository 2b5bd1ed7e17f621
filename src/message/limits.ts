/**
 * The most that a message may be; from the configuration. What is over a limit is refused where it enters.
 */
export type MessageLimits = {
  /** Bytes of the record's value, and of the message as it is written out. */
  readonly maxBytes: number
  /**
   * Levels of nested objects and arrays; the message itself is the first. Not over 1,000, which
   * JSON.stringify's stack bears.
   */
  readonly maxDepth: number
  /** Keys, those of all objects of all levels together. */
  readonly maxKeys: number
}

/** What the configuration has by default, with reasons in docs/decisions/018. */
export const defaultLimits: MessageLimits = { maxBytes: 1_048_576, maxDepth: 100, maxKeys: 10_000 }
