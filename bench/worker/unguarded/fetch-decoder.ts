/** kafkajs reads what it fetches. */
export function replaceFetchDecoder(): void {}
