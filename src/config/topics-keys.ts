import { boolean, choice, integer } from './key.ts'

export const topicsKeys = {
  partitions: integer({
    default: 12,
    min: 1,
    max: 1000,
    description:
      'The number of partitions of each topic, except for the few topics with one partition (docs/topics.md). At most as many processes can share the load. To change the number, use `sluice topics grow` (docs/growing.md).',
  }),
  generation: integer({
    default: 1,
    min: 1,
    max: 1000,
    description:
      'The generation of the topics that only Sluice writes. Each `sluice topics grow` makes a new generation, and prints the value to set here. If the value is not the newest generation, the process does not start.',
  }),
  replication: integer({
    default: 3,
    min: 1,
    max: 15,
    description: 'The number of replicas of each partition.',
  }),
  minInsync: integer({
    default: 2,
    min: 1,
    max: 15,
    description: 'How many replicas must have a record before it counts as written (`min.insync.replicas`).',
  }),
  check: choice({
    values: ['strict', 'warn', 'off'],
    default: 'strict',
    description:
      'What a process does at its start if replicas or settings of a topic differ, or if the cluster does not report them. `strict`: it does not start. `warn`: it logs the difference and goes on, and `sluice topics apply` leaves out settings that the cluster refuses. `off`: it does not check replicas and settings. If a topic is missing, or has another number of partitions, the process never starts.',
  }),
  development: boolean({
    default: false,
    description:
      'Use only one replica for each partition, for a cluster with one broker. If this broker is lost, the data is lost.',
  }),
} as const
