import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Message } from 'kafkajs'
import { encodeRetryState } from '../../src/retry/retry-state.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { preload } from '../support/preload.ts'
import { sumMetric } from '../support/running-worker.ts'
import { say } from '../support/say.ts'
import { startSender } from '../support/sender-process.ts'
import type { Stage } from '../support/stage.ts'
import { sluiceMain } from '../support/topics.ts'
import { startBurstReceiver } from './receiver.ts'

const partitions = 12
const tier = '1h'
const hourMs = 3_600_000
/** The records of others for one of the destination. */
const others = 10

/**
 * Measures a recall of one destination, whose `count` records lie between ten times as many records of others
 * on a retry topic: the time from the operator's order to the first request, and how many records come.
 */
export async function measureRecall(stage: Stage, count: number): Promise<Record<string, number>> {
  const receiver = await startBurstReceiver(0)
  try {
    const catalogFile = join(stage.folder, 'recall.json')
    const ids = ['recalled', ...Array.from({ length: others }, (_, index) => `other-${index}`)]
    const destinations = ids.map((id) => ({ id, sources: ['burst'], hooks: [{ url: receiver.url }] }))
    writeFileSync(catalogFile, JSON.stringify({ sources: [{ id: 'burst' }], destinations }))
    const variables = {
      SLUICE_CATALOG_FILE: catalogFile,
      SLUICE_TOPICS_PARTITIONS: String(partitions),
      SLUICE_RETRY_LADDER: tier,
      SLUICE_RETRY_THEN: tier,
    }
    const scene = await stage.setScene({ fleet: { count: 1 }, variables })
    const topic = scene.topic.replace(/events$/, `retry.${tier}`)
    await preload(stage.brokers, topic, count * (others + 1), (index) =>
      parked(index, ids[index % ids.length] ?? '', scene.topic),
    )
    const worker = await scene.startWorker()
    try {
      const waiting = async (): Promise<number> =>
        sumMetric(await worker.metrics(), 'sluice_parked_records', { tier })
      while ((await waiting()) < count * (others + 1)) await delay(200)
      receiver.begin()
      const order = startSender([sluiceMain, 'destinations', 'retry-now', 'recalled'], {
        outputFile: join(stage.folder, 'retry-now.log'),
        variables: scene.variables,
      })
      if ((await order.ended) !== 0) throw new BenchmarkFailure(`retry-now failed:\n${order.output()}`)
      const orderedMs = performance.now()
      await receiver.all(1, 60)
      const firstS = (Math.min(...receiver.arrivedMs.values()) - orderedMs) / 1_000
      const come = await settled(() => receiver.arrivedMs.size)
      const seconds = (Math.max(...receiver.arrivedMs.values()) - orderedMs) / 1_000
      say(`recall: the first after ${firstS.toFixed(2)} s, ${come} of ${count} in ${seconds.toFixed(1)} s`)
      return {
        recall_first_s: firstS,
        recalled: come,
        recalled_within_s: seconds,
        recall_repeats: receiver.requests - come,
      }
    } finally {
      await worker.abandon()
    }
  } finally {
    await receiver.stop()
  }
}

/** Returns a record of a message that failed once, without a limit on the time. */
function parked(number: number, destinationId: string, eventsTopic: string): Message {
  const messageId = `burst-${number}`
  const nowMs = Date.now()
  const headers = encodeRetryState({
    sourceId: 'burst',
    destinationId,
    messageId,
    kind: 'track',
    nextRung: 1,
    attempts: 1,
    firstSeenMs: nowMs,
    expiresAtMs: nowMs + 4 * hourMs,
    failedHooks: [],
    notBeforeMs: new Map(),
    lastOutcome: 'answered 503',
    origin: { topic: eventsTopic, partition: 0, offset: number },
  })
  // The destinations take turns, so the user mustn't depend on the same remainder.
  const userId = `user-${Math.floor(number / (others + 1)) % 9_973}`
  return { key: userId, value: JSON.stringify({ type: 'track', messageId, userId, event: 'Order' }), headers }
}

/** Returns a count once it hasn't changed for three seconds. */
async function settled(count: () => number): Promise<number> {
  for (let before = -1; before !== count();) {
    before = count()
    await delay(3_000)
  }
  return count()
}
