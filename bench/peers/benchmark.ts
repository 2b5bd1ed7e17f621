import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { inFlight } from '../worker/setting.ts'
import { deadShare, measureIsolation, warmupOf } from './isolation.ts'
import { buildPrograms, versions } from './programs.ts'
import { resultOf } from './result.ts'
import { measureThroughput } from './throughput.ts'

/**
 * The worker beside other ways to take events from Kafka and post them, each to the URL of its destination: a
 * naive program of franz-go and Go's own HTTP client, and Confluent's parallel consumer with Vert.x; and, as
 * what this stack costs at least, kafkajs with undici, without and with canonical JSON and a signature, and undici alone. First what a
 * delivery costs each, by turns on one preloaded topic; then what each keeps of the healthy traffic when a
 * tenth of all messages goes to a destination that never answers.
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
