import { BlockWriter, type WrittenState } from '../../src/delivery-log/block-writer.ts'

/** Returns the state of an attempt that succeeded just now. `given` replaces some of its fields. */
export function stateOf(given: Partial<WrittenState>): WrittenState {
  return {
    kind: 0,
    atMs: Date.now(),
    isEnd: true,
    weight: 1,
    destination: 'crm',
    hook: 'main',
    source: 'shop',
    messageId: 'm',
    messageType: 'track',
    originTopic: 'events',
    originPartition: 0,
    originOffset: 0,
    attempt: 1,
    verdict: 1,
    outcome: 1,
    status: 200,
    durationMs: 12,
    reason: '',
    error: '',
    waitMs: 0,
    firstSeenMs: Date.now(),
    user: '',
    job: '',
    answer: undefined,
    values: '',
    ...given,
  }
}

/** Returns the value of a record of the topic `attempts`, made of these states. */
export function blockOf(states: readonly WrittenState[]): Buffer {
  const writer = new BlockWriter()
  for (const state of states) writer.add(state)
  return writer.take()
}
