// Segment's limits. Its documentation says "32 KB per message, 500 KB per batch". Here a KB is 1,024 bytes,
// because analytics-go v3 sends batches of 500,008 bytes.

export const maxMessageBytes = 32 * 1_024
export const maxBatchBytes = 500 * 1_024
export const maxBatchMessages = 2_500

/**
 * The limit on a complete message, which includes the batch's context and the fields that the gateway adds.
 */
export const maxCompleteMessageBytes = 2 * maxMessageBytes
/**
 * The limit on the total bytes of all complete messages of a batch. Without this limit, a batch of 500 KB
 * could become gigabytes, because the batch's context is written into each message.
 */
export const maxCompleteBatchBytes = 16 * maxBatchBytes
