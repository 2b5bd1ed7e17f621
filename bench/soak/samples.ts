import { type RunningWorker, sumMetric } from '../support/running-worker.ts'

/** A moment of the worker. Counts are since its start. */
export type Sample = {
  rssBytes: number
  heapBytes: number
  /** Records taken from the events topic, and from retry topics. */
  events: number
  retries: number
  delivered: number
  dead: number
  /** Messages for a destination that was off. */
  notRouted: number
}

/** Fails when the worker has ended, with what its log says. */
export async function takeSample(worker: RunningWorker): Promise<Sample> {
  const text = await metricsOf(worker)
  const sum = (name: string, labels?: Record<string, string>): number => sumMetric(text, name, labels)
  const events = sum('sluice_records_total', { topic: 'events' })
  return {
    // VmRSS of its /proc/self/status.
    rssBytes: sum('process_resident_memory_bytes'),
    heapBytes: sum('nodejs_heap_size_used_bytes'),
    events,
    retries: sum('sluice_records_total') - events,
    delivered: sum('sluice_deliveries_total', { verdict: 'delivered' }),
    dead: sum('sluice_dead_letters_total'),
    notRouted: sum('sluice_not_routed_total'),
  }
}

/** Messages that have been read and have not come to an end. */
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
    // Tells why, when it has ended.
    await worker.stop()
    throw error
  }
}
