import { setImmediate as turn } from 'node:timers/promises'
import { BenchmarkFailure } from '../support/failure.ts'
import { appendAll, readyAlone, readyOfMany } from './million.ts'
import { createQueueTopics, deleteQueueTopics, openQueues, type OwnQueues } from './own-queues.ts'

const mostDrainMs = 300_000

/** So many messages, of destinations that take turns. */
type Waiting = { readonly ids: readonly string[]; readonly count: number }

/**
 * As many destinations as messages, with one message each, compared with one destination that has all
 * messages: the time until all are read and settled, and the memory of the queues.
 */
export async function measureSingles(
  brokers: readonly string[],
  count: number,
): Promise<Record<string, number>> {
  const many = await drainTime(brokers, {
    ids: Array.from({ length: count }, (_, index) => `single-${index}`),
    count,
  })
  const one = await drainTime(brokers, { ids: ['one'], count })
  return {
    singles_drain_ratio: many.seconds / one.seconds,
    singles_drain_s: many.seconds,
    singles_bytes_per_waiting: many.bytesEach,
  }
}

async function drainTime(
  brokers: readonly string[],
  { ids, count }: Waiting,
): Promise<{ seconds: number; bytesEach: number }> {
  const of = await createQueueTopics(brokers, 1)
  try {
    const opened = await openQueues(brokers, of)
    await opened.takeOver()
    await appendAll(opened, count, (index) => ids[index % ids.length] ?? '')
    const bytesEach = opened.queues.indexBytes / count
    const startedMs = performance.now()
    await drain(opened, { ids, count })
    const seconds = (performance.now() - startedMs) / 1_000
    await opened.stop()
    return { seconds, bytesEach }
  } finally {
    await deleteQueueTopics(brokers, of)
  }
}

/** Pulls and settles all that waits, as fast as it comes. */
async function drain(opened: OwnQueues, { ids, count }: Waiting): Promise<void> {
  const most = ids.length === 1 ? readyAlone : readyOfMany
  const wanted = new Map(ids.map((id) => [id, 0]))
  let done = 0
  // The destinations of which less was pulled than may be held.
  let short = [...ids]
  opened.onTaken = (record, id) => {
    record.settle()
    done++
    wanted.set(id, (wanted.get(id) ?? 0) - 1)
    short.push(id)
  }
  const deadlineMs = performance.now() + mostDrainMs
  for (;;) {
    if (done === count) return
    const present = new Set(short)
    short = []
    for (const id of present) {
      const before = wanted.get(id) ?? 0
      // What is kept in memory is taken during this call.
      const more = opened.queues.pull(id, 'fresh', most - before)
      wanted.set(id, (wanted.get(id) ?? 0) + more)
    }
    if (performance.now() > deadlineMs)
      throw new BenchmarkFailure(`${done} of ${count} waiting messages were read`)
    await turn()
  }
}
