import { type RunningWorker, sumMetric } from '../support/running-worker.ts'

/** A sample of the worker. Counts are totals since the worker's start. */
export type Sample = {
  rssBytes: number
  heapBytes: number
  /** The number of records taken from the topic `events`. */
  events: number
  /** The number of records taken from retry topics. */
  retries: number
  delivered: number
  dead: number
  /** The number of messages for a destination that was off. */
  notRouted: number
}

/** Takes a sample. If the worker has ended, the error contains its log. */
export async function takeSample(worker: RunningWorker): Promise<Sample> {
  const text = await metricsOf(worker)
  const sum = (name: string, labels?: Record<string, string>): number => sumMetric(text, name, labels)
  const events = sum('sluice_records_total', { topic: 'events' })
  return {
    // This metric is VmRSS in the worker's /proc/self/status.
    rssBytes: sum('process_resident_memory_bytes'),
    heapBytes: sum('nodejs_heap_size_used_bytes'),
    events,
    retries: sum('sluice_records_total') - events,
    delivered: sum('sluice_deliveries_total', { verdict: 'delivered' }),
    dead: sum('sluice_dead_letters_total'),
    notRouted: sum('sluice_not_routed_total'),
  }
}

/** Returns the number of messages that the worker has read and that haven't ended. */
export function openMessages({ events, delivered, dead, notRouted }: Sample): number {
  return events - delivered - dead - notRouted
}

export function mibOf(bytes: number): number {
  return bytes / 1024 ** 2
}

async function metricsOf(worker: RunningWorker): Promise<string> {
  try {
    return await worker.metrics()
  } catch (error) {
    // If the worker has ended, `stop` throws an error that says why.
    await worker.stop()
    throw error
  }
}
