/** What is measured beside each other; with how it is called in the table. */
export const labels = {
  worker: 'sluice worker, signed',
  'franz-go': 'franz-go + net/http, naive',
  'parallel-consumer': 'parallel-consumer + Vert.x',
  signing: 'the floor, that signs',
  floor: 'kafkajs + dispatch, one URL',
  dispatch: 'undici dispatch, no Kafka',
} as const

export type PeerName = keyof typeof labels

export const peerNames: readonly PeerName[] = [
  'dispatch',
  'floor',
  'signing',
  'franz-go',
  'parallel-consumer',
  'worker',
]

/** Those that read from Kafka what goes to several destinations: the others have nothing to isolate. */
export const isolatedNames = ['worker', 'franz-go', 'parallel-consumer'] as const

export type IsolatedName = (typeof isolatedNames)[number]
