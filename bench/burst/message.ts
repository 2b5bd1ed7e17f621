import type { Message } from 'kafkajs'

/** Returns a message of the source `burst`, of one of so many users. */
export function messageAt(index: number, users: number): Message {
  const userId = `user-${index % Math.max(1, Math.floor(users))}`
  const value = {
    type: 'track',
    event: 'Order Completed',
    userId,
    messageId: `burst-${index}`,
    properties: { text: 'x'.repeat(700) },
  }
  return { key: userId, value: JSON.stringify(value), headers: { 'source-id': 'burst' } }
}
