import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { inFlight } from '../worker/setting.ts'
import { deadShare, measureIsolation, warmupOf } from './isolation.ts'
import { buildPrograms, versions } from './programs.ts'
import { resultOf } from './result.ts'
import { measureThroughput } from './throughput.ts'

/**
 * Compares the worker with other programs that read events from Kafka and post each event to the URL of its
 * destination:
 * - a naive program with franz-go and Go's own HTTP client
 * - Confluent's parallel consumer with Vert.x
 *
 * Three programs of the worker's own stack show the least cost: kafkajs with undici, the same with canonical
 * JSON and a signature, and undici alone. The first part measures the cost of a delivery, by turns on one
 * preloaded topic. The second part measures how much of the healthy traffic is left if a tenth of all
 * messages goes to a destination that never answers.
 */
export async function runPeersBenchmark(settings: Settings): Promise<BenchmarkResult> {
  const { runs = 3, messages = 400_000, seconds = 30, rate: ratePerS = 2_000, profileDir } = settings
  const programs = await buildPrograms(say)
  const throughput = await measureThroughput(programs, { runs, messages, profileDir })
  const isolation = await measureIsolation(programs, { runs, ratePerS, seconds, profileDir })
  const warmupS = warmupOf(seconds)
  return resultOf(
    { throughput, isolation },
    { runs, messages, inFlight, ratePerS, deadShare, seconds, warmupS, versions },
  )
}
