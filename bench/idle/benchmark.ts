import { setTimeout as delay } from 'node:timers/promises'
import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { openStage, type Stage } from '../support/stage.ts'
import { median, round } from '../support/statistics.ts'
import { rowOf } from '../support/table.ts'

/** Measures the CPU time of a worker that has nothing to do, with few units and with many. */
export async function runIdleBenchmark(settings: Settings): Promise<BenchmarkResult> {
  const { runs = 3, seconds = 20, profileDir } = settings
  const stage = await openStage({ destinations: 1, profileDir, report: say })
  const measured: Record<'few' | 'many', number[]> = { few: [], many: [] }
  try {
    for (let run = 1; run <= runs; run++) {
      for (const [name, units] of sides) {
        const runMs = await idleCpuMs(stage, units, seconds)
        measured[name].push(runMs)
        say(`run ${run}: ${units} units: ${runMs.toFixed(1)} ms of CPU a second`)
      }
    }
  } finally {
    await stage.close()
  }
  const cpuMs = { few: median(measured.few), many: median(measured.many) }
  return {
    table: [
      '',
      `a worker with nothing to do, medians of ${runs} runs of ${seconds} s, Node ${process.version}`,
      '',
      rowOf('', ['CPU ms a second']),
      ...sides.map(([name, units]) => rowOf(`${units} units`, [cpuMs[name].toFixed(1)])),
    ].join('\n'),
    figures: {
      idle_cpu_ms_per_s: round(cpuMs.few, 1),
      idle_many_cpu_ms_per_s: round(cpuMs.many, 1),
      units: fewUnits,
      many_units: manyUnits,
      runs,
      seconds,
      node: process.version,
    },
  }
}

const fewUnits = 6
const manyUnits = 48
const sides = [
  ['few', fewUnits],
  ['many', manyUnits],
] as const
/** Pause before the measurement, in which the worker finishes the work that follows its start. */
const settleMs = 5_000

async function idleCpuMs(stage: Stage, units: number, seconds: number): Promise<number> {
  const scene = await stage.setScene({
    fleet: { count: 1 },
    variables: { SLUICE_TOPICS_PARTITIONS: String(units) },
  })
  const worker = await scene.startWorker()
  try {
    await delay(settleMs)
    const before = worker.cpuUs()
    await delay(seconds * 1_000)
    const cpuMs = (worker.cpuUs() - before) / 1_000 / seconds
    await worker.stop()
    return cpuMs
  } finally {
    await worker.abandon()
  }
}
