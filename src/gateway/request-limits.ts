/**
 * Segment's limits, "32 KB per message, 500 KB per batch" in its documentation, where a KB is 1,024
 * bytes: analytics-go v3 sends batches of 500,008 bytes.
 */
export const maxMessageBytes = 32 * 1_024
export const maxBatchBytes = 500 * 1_024
export const maxBatchMessages = 2_500

/** A message with what its batch adds to it: the batch's context, and the fields that the gateway gives. */
export const maxCompleteMessageBytes = 2 * maxMessageBytes
/** A batch with its context written into each message: 500 KB must not become gigabytes. */
export const maxCompleteBatchBytes = 16 * maxBatchBytes
