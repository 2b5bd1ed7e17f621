const properties = { total: 12.5, items: ['a', 'b'], name: 'x'.repeat(300) }
const message = { type: 'track', userId: 'user-1', event: 'Order Completed', properties }
const body = JSON.stringify({ batch: Array.from({ length: 1_200 }, () => message) })

/**
 * Parses an ordinary body of half a megabyte and writes it again. Tests of cost use this work as their unit,
 * because machines differ.
 */
export function rewriteOrdinaryBody(): string {
  return JSON.stringify(JSON.parse(body))
}
