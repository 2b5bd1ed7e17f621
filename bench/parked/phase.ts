import { setTimeout as delay } from 'node:timers/promises'
import { watchOthers } from '../support/machine-cpu.ts'
import { type RunningWorker, sumMetric } from '../support/running-worker.ts'
import { median } from '../support/statistics.ts'

/** The resources that a worker used during a phase of the benchmark. */
export type Phase = {
  rssBytes: number
  maxRssBytes: number
  heapBytes: number
  /** The CPU time as a share of one CPU. It may be above 1. */
  cpuShare: number
  /** The share of the machine's CPU time that other programs used, from 0 to 1. */
  othersShare: number
  /** The smallest and the largest value of `sluice_parked_records` for the tier. */
  parked: { min: number; max: number }
}

const sampleMs = 2_000

/** Samples the worker until `work` is done. Sizes are medians of all samples. */
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
    // This metric is VmRSS in the worker's /proc/self/status.
    rssBytes: sumMetric(metrics, 'process_resident_memory_bytes'),
    heapBytes: sumMetric(metrics, 'nodejs_heap_size_used_bytes'),
    parked: sumMetric(metrics, 'sluice_parked_records', { tier }),
  }
}
