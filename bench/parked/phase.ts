import { setTimeout as delay } from 'node:timers/promises'
import { watchOthers } from '../support/machine-cpu.ts'
import { type RunningWorker, sumMetric } from '../support/running-worker.ts'
import { median } from '../support/statistics.ts'

/** What a worker used while something went on. */
export type Phase = {
  rssBytes: number
  maxRssBytes: number
  heapBytes: number
  /** Of one CPU, 0 to 1 and above. */
  cpuShare: number
  /** Of the machine, by other programs: 0 to 1. */
  othersShare: number
  /** `sluice_parked_records` of the tier: the least and the most. */
  parked: { min: number; max: number }
}

const sampleMs = 2_000

/** Watches the worker until `work` is done; medians over all samples. */
export async function observe(worker: RunningWorker, tier: string, work: Promise<unknown>): Promise<Phase> {
  const isOver = work.then(
    () => true,
    () => true,
  )
  const startedMs = performance.now()
  const cpuBeforeUs = worker.cpuUs()
  const othersShare = watchOthers()
  const samples = [await sample(worker, tier)]
  while (!(await Promise.race([isOver, delay(sampleMs, false)]))) samples.push(await sample(worker, tier))
  await work
  const elapsedUs = (performance.now() - startedMs) * 1_000
  const parked = samples.map((one) => one.parked)
  return {
    rssBytes: median(samples.map((one) => one.rssBytes)),
    maxRssBytes: Math.max(...samples.map((one) => one.rssBytes)),
    heapBytes: median(samples.map((one) => one.heapBytes)),
    cpuShare: (worker.cpuUs() - cpuBeforeUs) / elapsedUs,
    othersShare: othersShare(),
    parked: { min: Math.min(...parked), max: Math.max(...parked) },
  }
}

export function mibOf(bytes: number): number {
  return bytes / 1024 ** 2
}

async function sample(
  worker: RunningWorker,
  tier: string,
): Promise<{ rssBytes: number; heapBytes: number; parked: number }> {
  const metrics = await worker.metrics()
  return {
    // VmRSS of its /proc/self/status.
    rssBytes: sumMetric(metrics, 'process_resident_memory_bytes'),
    heapBytes: sumMetric(metrics, 'nodejs_heap_size_used_bytes'),
    parked: sumMetric(metrics, 'sluice_parked_records', { tier }),
  }
}
