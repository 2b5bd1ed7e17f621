/** The limits on a message, from the configuration. A message over a limit is refused when it is read. */
export type MessageLimits = {
  /** Limit on the bytes of the record's value, and on the bytes of the body that is sent. */
  readonly maxBytes: number
  /**
   * Limit on the levels of nested objects and arrays. The message itself is the first level. The limit is at
   * most 1,000, because JSON.stringify uses the stack.
   */
  readonly maxDepth: number
  /** Limit on keys, counted over all objects of all levels. */
  readonly maxKeys: number
}

/** The defaults of the configuration. docs/decisions/018 has the reasons. */
export const defaultLimits: MessageLimits = { maxBytes: 1_048_576, maxDepth: 100, maxKeys: 10_000 }
