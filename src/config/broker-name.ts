/**
 * Returns true for a broker's address. Accepts only names and IPv4 addresses, because kafkajs splits the
 * address at the first colon.
 */
export function isBroker(item: string): boolean {
  const port = Number(/^[A-Za-z0-9._-]+:(\d{1,5})$/.exec(item)?.[1])
  return port >= 1 && port <= 65_535
}
