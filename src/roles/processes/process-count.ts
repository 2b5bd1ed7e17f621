import { availableParallelism } from 'node:os'
import type { Config } from '../../config/schema.ts'

/**
 * Returns how many processes `sluice worker` runs. `auto` respects CPU affinity and the container's quota.
 */
export function processCount({ worker, topics }: Config): number {
  if (worker.processes !== 'auto') return worker.processes
  return Math.min(availableParallelism(), topics.partitions)
}
