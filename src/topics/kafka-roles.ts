/** The commands that talk to a cluster. Each needs rights of its own. */
export const kafkaRoles = [
  'worker',
  'gateway',
  'up',
  'topics apply',
  'topics check',
  'topics grow',
  'topics grow --abandon',
  'topics grow --clean',
  'send',
  'audience sync',
  'audience sync --allow-leaving',
  'audience change',
  'audience backfill',
  'log serve',
  'log tail',
  'log find',
  'replay',
  'destinations',
  'catalog',
  'admin',
] as const
export type KafkaRole = (typeof kafkaRoles)[number]
