/**
 * Does nothing, so that kafkajs decodes fetched records itself. It replaces `src/kafka/fetch-decoder.ts`,
 * which no longer exists, so nothing loads this module.
 */
export function replaceFetchDecoder(): void {}
