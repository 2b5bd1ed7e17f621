import type { QueueClass, WaitingQueue } from '../../../src/pipeline/pipeline-ports.ts'

/**
 * The queue of a destination in Kafka that only takes messages. `onTaken` is called with the id and the class
 * of each.
 */
export function takingQueue(
  onTaken: (messageId: string, queueClass: QueueClass) => void,
  { isOpen = true, has = () => false }: Partial<Pick<WaitingQueue, 'isOpen' | 'has'>> = {},
): WaitingQueue {
  return {
    isOpen,
    has,
    wasQueued: () => false,
    isOvertaken: () => false,
    append: async (_source, _id, queueClass, { headers }) => {
      onTaken(String(headers['message-id']), queueClass)
      return 'acknowledged'
    },
    waiting: () => [],
    countOf: () => 0,
    oldestOf: () => undefined,
    wantedOf: () => 0,
    wanted: 0,
    pull: () => 0,
  }
}
