/** The names of the compared programs, with their names in the table. */
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

/** The programs that deliver from Kafka to several destinations. The others have nothing to isolate. */
export const isolatedNames = ['worker', 'franz-go', 'parallel-consumer'] as const

export type IsolatedName = (typeof isolatedNames)[number]
