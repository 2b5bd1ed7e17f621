/**
 * Segment's limits. Its documentation says "32 KB per message, 500 KB per batch". Here a KB is 1,024 bytes,
 * because analytics-go v3 sends batches of 500,008 bytes.
 */
export const maxMessageBytes = 32 * 1_024
export const maxBatchBytes = 500 * 1_024
export const maxBatchMessages = 2_500

/**
 * The limit on a message together with everything that is added to it: the batch's context, and the gateway's
 * own fields.
 */
export const maxCompleteMessageBytes = 2 * maxMessageBytes
/**
 * The limit on a batch whose context is written into each message. A batch of 500 KB must not become
 * gigabytes.
 */
export const maxCompleteBatchBytes = 16 * maxBatchBytes
