import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { monotonicUs } from '../support/clock.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { startProducer } from '../support/producer-process.ts'
import { type RunningWorker, sumMetric } from '../support/running-worker.ts'
import type { Recorder } from '../support/recorder-process.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { openStage, type Scene, type Stage } from '../support/stage.ts'
import { median, round } from '../support/statistics.ts'
import { messagesOfAll, type Stream } from '../support/streams.ts'
import { rowOf } from '../support/table.ts'
import { sluiceMain } from '../support/topics.ts'
import { sharedSecret } from '../support/worker-variables.ts'

/**
 * Measures how long starts take, and the memory of a worker. It measures `sluice --help` as built and from
 * its sources, compared with Node with an empty program. It measures a worker of one process from its start
 * until `/readyz` succeeds, on a Kafka that has served earlier runs. Then it measures the memory of this
 * worker while it has nothing to do, and under a steady load.
 */
export async function runStartBenchmark(settings: Settings): Promise<BenchmarkResult> {
  const { runs = 3, seconds = 30, rate = 2_000, profileDir } = settings
  build()
  const help = measureHelp()
  const stage = await openStage({ destinations, profileDir, report: say })
  const workers: Measured[] = []
  try {
    // Run 0 doesn't count, because Kafka has served no worker before it.
    for (let run = 0; run <= runs; run++) {
      const measured = await measureWorker(stage, { rate, seconds: run === 0 ? 1 : seconds })
      say(`run ${run}: ${describe(measured)}${run === 0 ? ' (not counted)' : ''}`)
      if (run > 0) workers.push(measured)
    }
  } finally {
    await stage.close()
  }
  return resultOf(help, workers, { runs, seconds, rate })
}

const destinations = 100
const partitions = 12
const helpRuns = 20
/** The wait until the work after a start is done, and V8 has released the memory that it doesn't need. */
const settleMs = 20_000
const sampleEveryMs = 1_000
const drainMs = 60_000
const pollMs = 100

const root = resolve(import.meta.dirname, '../..')
const builtMain = resolve(root, 'dist/main.js')

function build(): void {
  const { status } = spawnSync(process.execPath, [resolve(root, 'scripts/build.ts')], { stdio: 'inherit' })
  if (status !== 0) throw new BenchmarkFailure('the build failed')
}

const programs = {
  bare: ['--eval', '0'],
  built: [builtMain, '--help'],
  sources: [sluiceMain, '--help'],
} as const
type ProgramName = keyof typeof programs

type Taken = { wallMs: number; cpuMs: number }

/**
 * A module that makes a process write its CPU time, in microseconds, as the last line of its standard error.
 */
const tellCpu =
  'data:text/javascript,process.on("exit",()=>{const{user,system}=process.cpuUsage();process.stderr.write("\\n"+(user+system))})'

/**
 * Returns the medians of each program. The programs take turns, so that changes of the machine affect all
 * equally.
 */
function measureHelp(): Record<ProgramName, Taken> {
  const taken: Record<ProgramName, Taken[]> = { bare: [], built: [], sources: [] }
  for (let run = 0; run < helpRuns; run++) {
    for (const name of ['bare', 'built', 'sources'] as const) taken[name].push(runOnce(programs[name]))
  }
  const of = (name: ProgramName): Taken => ({
    wallMs: median(taken[name].map(({ wallMs }) => wallMs)),
    cpuMs: median(taken[name].map(({ cpuMs }) => cpuMs)),
  })
  return { bare: of('bare'), built: of('built'), sources: of('sources') }
}

function runOnce(args: readonly string[]): Taken {
  const fromMs = performance.now()
  const { status, stderr } = spawnSync(process.execPath, ['--import', tellCpu, ...args], { encoding: 'utf8' })
  const wallMs = performance.now() - fromMs
  if (status !== 0) throw new BenchmarkFailure(`node ${args.join(' ')} failed:\n${stderr}`)
  return { wallMs, cpuMs: Number(stderr.split('\n').at(-1)) / 1_000 }
}

type Measured = { readyMs: number; readyCpuMs: number; idleMb: number; loadedMb: number }

async function measureWorker(stage: Stage, load: { rate: number; seconds: number }): Promise<Measured> {
  const scene = await stage.setScene({
    fleet: { count: destinations },
    variables: { SLUICE_TOPICS_PARTITIONS: String(partitions) },
  })
  const worker = await scene.startWorker({ main: builtMain })
  try {
    const readyCpuMs = worker.cpuUs() / 1_000
    await delay(settleMs)
    const idleMb = await residentMb(worker)
    const loadedMb = await loadedMemory(stage, scene, worker, load)
    await worker.stop()
    return { readyMs: worker.readyMs, readyCpuMs, idleMb, loadedMb }
  } finally {
    await worker.abandon()
  }
}

/**
 * Returns the median memory under load, with a sample a second. The first third of the load doesn't count.
 */
async function loadedMemory(
  { recorder, brokers }: Stage,
  { topic }: Scene,
  worker: RunningWorker,
  { rate, seconds }: { rate: number; seconds: number },
): Promise<number> {
  const streams: Stream[] = [
    { first: 0, count: destinations, perS: rate, fromS: 0, untilS: seconds, order: 'random' },
  ]
  const messages = messagesOfAll(streams)
  const producer = await startProducer({ brokers, topic, streams, fromS: 0 })
  const samples: number[] = []
  try {
    recorder.begin({ messages, secret: sharedSecret, special: [] })
    const produced = producer.run(monotonicUs())
    for (let second = 1; second <= seconds; second++) {
      await delay(sampleEveryMs)
      if (second > seconds / 3) samples.push(await residentMb(worker))
    }
    await produced
    await allArrived(recorder, messages)
    return median(samples)
  } finally {
    await producer.stop()
  }
}

/** Waits until all messages have arrived. Throws after a minute, as the load was then too small. */
async function allArrived(recorder: Recorder, messages: number): Promise<void> {
  const deadlineMs = performance.now() + drainMs
  for (let come = 0; come < messages; { others: come } = await recorder.progress()) {
    if (performance.now() > deadlineMs) {
      throw new BenchmarkFailure(`${come} of ${messages} messages came: the machine is too busy`)
    }
    await delay(pollMs)
  }
}

async function residentMb(worker: RunningWorker): Promise<number> {
  return sumMetric(await worker.metrics(), 'process_resident_memory_bytes') / 1024 ** 2
}

function describe({ readyMs, readyCpuMs, idleMb, loadedMb }: Measured): string {
  return `ready after ${Math.round(readyMs)} ms and ${Math.round(readyCpuMs)} ms of CPU; ${Math.round(idleMb)} MB idle, ${Math.round(loadedMb)} MB loaded`
}

function resultOf(
  help: Record<ProgramName, Taken>,
  workers: readonly Measured[],
  { runs, seconds, rate }: { runs: number; seconds: number; rate: number },
): BenchmarkResult {
  const of = (pick: (one: Measured) => number): number => median(workers.map(pick))
  const figures = {
    help_ms: round(help.built.wallMs, 0),
    help_cpu_ms: round(help.built.cpuMs, 0),
    help_sources_ms: round(help.sources.wallMs, 0),
    help_sources_cpu_ms: round(help.sources.cpuMs, 0),
    bare_node_ms: round(help.bare.wallMs, 0),
    bare_node_cpu_ms: round(help.bare.cpuMs, 0),
    ready_ms: round(
      of(({ readyMs }) => readyMs),
      0,
    ),
    ready_cpu_ms: round(
      of(({ readyCpuMs }) => readyCpuMs),
      0,
    ),
    idle_rss_mb: round(
      of(({ idleMb }) => idleMb),
      0,
    ),
    loaded_rss_mb: round(
      of(({ loadedMb }) => loadedMb),
      0,
    ),
    partitions,
    destinations,
    rate_per_s: rate,
    seconds,
    runs,
    node: process.version,
  }
  const table = [
    '',
    `medians of ${helpRuns} runs, for the worker of ${runs}; ${partitions} partitions, Node ${process.version}`,
    '',
    rowOf('', ['ms', 'CPU ms']),
    ...(['bare', 'built', 'sources'] as const).map((name) =>
      rowOf(helpLabels[name], [help[name].wallMs.toFixed(0), help[name].cpuMs.toFixed(0)]),
    ),
    rowOf('worker until ready', [String(figures.ready_ms), String(figures.ready_cpu_ms)]),
    '',
    rowOf('', ['MB resident']),
    rowOf('worker, idle', [String(figures.idle_rss_mb)]),
    rowOf(`worker, ${rate} messages a second`, [String(figures.loaded_rss_mb)]),
  ].join('\n')
  return { table, figures }
}

const helpLabels: Record<ProgramName, string> = {
  bare: 'node, empty program',
  built: 'sluice --help, built',
  sources: 'sluice --help, sources',
}
