import { boolean, choice, integer } from './key.ts'

/** The settings of the topics' layout. */
export const topicsKeys = {
  partitions: integer({
    default: 12,
    min: 1,
    max: 1000,
    description:
      'The number of partitions of each data topic. It is the same for all of them, and at most this many processes share the load. `sluice topics grow` takes an installation to more partitions (docs/growing.md).',
  }),
  generation: integer({
    default: 1,
    min: 1,
    max: 1000,
    description:
      'Which generation of the topics that only Sluice writes is in use. Each growth makes a new generation, and prints the value to set here. The start fails if the value is not the newest generation.',
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
      'What to do at the start when replicas or settings of a topic differ, or when the cluster does not report them. `strict`: the start fails. `warn`: Sluice logs the difference and goes on, and `sluice topics apply` leaves out what the cluster refuses. `off`: replicas and settings are not checked. A missing topic, or another number of partitions, always fails the start.',
  }),
  development: boolean({
    default: false,
    description:
      'Use one replica of everything, for a cluster of one broker. If this broker is lost, the data is lost.',
  }),
} as const
