import { BenchmarkFailure } from '../support/failure.ts'
import { messageBytes } from '../support/messages.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { round } from '../support/statistics.ts'
import { rowOf } from '../support/table.ts'
import { describe, measureByTurns, type Measurement, medianOf } from '../support/turns.ts'
import { partitions, processesVariable } from '../support/worker-variables.ts'
import { senderFor, type SenderName } from './senders.ts'
import { inFlight, openSetting, type Place } from './setting.ts'

const shortRuns = { runs: 3, messages: 400_000 }

/**
 * Returns the defaults for a benchmark with several processes. Each process compiles its code once, which
 * takes a second or two of CPU time. In a long run, as with a worker that runs for hours, this share is
 * negligible.
 */
function longRun(processes: number): typeof shortRuns {
  return { runs: 1, messages: 600_000 * processes }
}

/**
 * Measures the cost of a delivery for the worker, and for programs to compare with:
 * - undici alone
 * - a program with kafkajs and undici that does nothing else
 * - the same program with canonical bodies and signatures
 * - a worker without its guards against hostile endpoints and records
 *
 * All programs are measured by turns, so that changes of the machine affect all equally. With `processes`,
 * the benchmark also measures a worker and a bare dispatch with this number of processes, and adds up their
 * CPU times. It also measures a worker with one process on a machine that is as busy as with this number of
 * processes. With `log`, it also measures a worker without the delivery log, and a worker that keeps answers
 * and has the source of notices.
 */
export async function runWorkerBenchmark(settings: Settings): Promise<BenchmarkResult> {
  const { processes = 1, tls = false, log = false, profileDir } = settings
  const { runs, messages } = { ...(processes > 1 ? longRun(processes) : shortRuns), ...settings }
  if (processes > 1 && Object.keys(processesVariable(processes)).length === 0) {
    throw new BenchmarkFailure('this version of the worker has one process only')
  }
  const names: SenderName[] = [
    'dispatch',
    'floor',
    'signing',
    'worker',
    'unguarded',
    ...(log ? (['unlogged', 'answers'] as const) : []),
    ...(processes > 1 ? (['crowded', 'processes', 'dispatches'] as const) : []),
  ]
  const measured = new Map<SenderName, Measurement[]>(names.map((name) => [name, []]))
  const setting = await openSetting({ messages, tls, report: say })
  try {
    const places = new Map<SenderName, Place>()
    for (const name of names)
      places.set(name, await setting.openPlace(name, { hasNotices: name === 'answers' }))
    for (let run = 1; run <= runs; run++) {
      const senders = [...places].map(([name, place]) =>
        senderFor(name, setting, place, { profileDir, processes }),
      )
      const of = await measureByTurns(senders, messages)
      for (const name of names) {
        const measurement = of.get(name)
        if (measurement === undefined) throw new BenchmarkFailure(`${name} was not measured`)
        measured.get(name)?.push(measurement)
        say(`run ${run}: ${name} ${describe(measurement)}`)
      }
    }
  } finally {
    await setting.close()
  }
  const of = (name: SenderName): Measurement => medianOf(measured.get(name) ?? [])
  const medians: Medians = {
    dispatch: of('dispatch'),
    floor: of('floor'),
    signing: of('signing'),
    worker: of('worker'),
    unguarded: of('unguarded'),
    logs: log ? { unlogged: of('unlogged'), answers: of('answers') } : undefined,
    several:
      processes > 1
        ? { crowded: of('crowded'), processes: of('processes'), dispatches: of('dispatches') }
        : undefined,
  }
  const settled = { runs, messages, processes, tls }
  return { table: tableOf(medians, settled), figures: figuresOf(medians, settled) }
}

type Several = 'crowded' | 'processes' | 'dispatches'
type Logs = 'unlogged' | 'answers'
type Medians = Record<Exclude<SenderName, Several | Logs>, Measurement> & {
  logs: Record<Logs, Measurement> | undefined
  several: Record<Several, Measurement> | undefined
}
type Settled = { runs: number; messages: number; processes: number; tls: boolean }

function figuresOf(medians: Medians, { runs, messages, processes: count, tls }: Settled): object {
  const { dispatch, floor, signing, worker, unguarded, logs, several } = medians
  return {
    deliveries_per_s: Math.round(worker.deliveriesPerS),
    cpu_us: round(worker.cpuUs, 1),
    dispatch_cpu_us: round(dispatch.cpuUs, 1),
    ratio: round(worker.cpuUs / dispatch.cpuUs, 2),
    connections_each: round(worker.connectionsEach, 4),
    dispatch_connections_each: round(dispatch.connectionsEach, 4),
    tls,
    bare_floor_cpu_us: round(floor.cpuUs, 1),
    floor_cpu_us: round(signing.cpuUs, 1),
    floor_ratio: round(worker.cpuUs / signing.cpuUs, 2),
    unguarded_cpu_us: round(unguarded.cpuUs, 1),
    guards_ratio: round(worker.cpuUs / unguarded.cpuUs, 3),
    guards_warm_ratio: round(worker.warmCpuUs / unguarded.warmCpuUs, 3),
    dispatch_per_s: Math.round(dispatch.deliveriesPerS),
    floor_deliveries_per_s: Math.round(signing.deliveriesPerS),
    warm: {
      deliveries_per_s: Math.round(worker.warmDeliveriesPerS),
      cpu_us: round(worker.warmCpuUs, 1),
      dispatch_cpu_us: round(dispatch.warmCpuUs, 1),
      floor_cpu_us: round(signing.warmCpuUs, 1),
      floor_ratio: round(worker.warmCpuUs / signing.warmCpuUs, 2),
      ratio: round(worker.warmCpuUs / dispatch.warmCpuUs, 2),
    },
    ...(logs !== undefined && {
      unlogged_cpu_us: round(logs.unlogged.cpuUs, 1),
      log_ratio: round(worker.cpuUs / logs.unlogged.cpuUs, 3),
      log_warm_ratio: round(worker.warmCpuUs / logs.unlogged.warmCpuUs, 3),
      answers_ratio: round(logs.answers.cpuUs / worker.cpuUs, 3),
      answers_warm_ratio: round(logs.answers.warmCpuUs / worker.warmCpuUs, 3),
    }),
    ...(several !== undefined && {
      processes: count,
      processes_cpu_us: round(several.processes.cpuUs, 1),
      processes_deliveries_per_s: Math.round(several.processes.deliveriesPerS),
      processes_ratio: round(several.processes.cpuUs / worker.cpuUs, 3),
      processes_warm_ratio: round(several.processes.warmCpuUs / worker.warmCpuUs, 3),
      crowded_ratio: round(several.crowded.cpuUs / worker.cpuUs, 3),
      crowded_warm_ratio: round(several.crowded.warmCpuUs / worker.warmCpuUs, 3),
      processes_crowded_ratio: round(several.processes.cpuUs / several.crowded.cpuUs, 3),
      processes_crowded_warm_ratio: round(several.processes.warmCpuUs / several.crowded.warmCpuUs, 3),
      dispatch_processes_ratio: round(several.dispatches.cpuUs / dispatch.cpuUs, 3),
      dispatch_processes_warm_ratio: round(several.dispatches.warmCpuUs / dispatch.warmCpuUs, 3),
    }),
    runs,
    messages,
    message_bytes: messageBytes,
    partitions,
    in_flight: inFlight,
    node: process.version,
  }
}

function tableOf(medians: Medians, { runs, messages, processes: count, tls }: Settled): string {
  const { dispatch, floor, signing, worker, unguarded, logs, several } = medians
  return [
    '',
    `${messages.toLocaleString('en')} messages of ${messageBytes} bytes, ${partitions} partitions, ${inFlight} in flight, ${tls ? 'over TLS 1.3' : 'without TLS'};`,
    `medians of ${runs} runs, Node ${process.version}`,
    '',
    rowOf('', ['deliveries/s', 'CPU µs each', 'second half', 'connects each']),
    row('undici dispatch alone', dispatch),
    row('kafkajs + dispatch, no more', floor),
    row('the same, canonical and signed', signing),
    row('sluice worker', worker),
    row('sluice worker, no guards', unguarded),
    ...(logs === undefined
      ? []
      : [
          row('sluice worker, no delivery log', logs.unlogged),
          row('sluice worker, answers and notices', logs.answers),
        ]),
    ...(several === undefined
      ? []
      : [
          row('sluice worker, crowded', several.crowded),
          row(`sluice worker, ${count} processes`, several.processes),
          row(`undici dispatch, ${count} processes`, several.dispatches),
        ]),
    '',
    rowOf('worker / dispatch', ['', ...ratios(worker, dispatch)]),
    rowOf('worker / kafkajs + dispatch', ['', ...ratios(worker, floor)]),
    rowOf('worker / canonical and signed', ['', ...ratios(worker, signing)]),
    rowOf('worker / no guards', ['', ...ratios(worker, unguarded)]),
    ...(logs === undefined
      ? []
      : [
          rowOf('worker / no delivery log', ['', ...ratios(worker, logs.unlogged)]),
          rowOf('answers and notices / worker', ['', ...ratios(logs.answers, worker)]),
        ]),
    ...(several === undefined
      ? []
      : [
          rowOf(`worker, ${count} processes / one`, ['', ...ratios(several.processes, worker)]),
          rowOf('crowded / alone', ['', ...ratios(several.crowded, worker)]),
          rowOf(`${count} processes / crowded`, ['', ...ratios(several.processes, several.crowded)]),
          rowOf(`dispatch, ${count} processes / one`, ['', ...ratios(several.dispatches, dispatch)]),
        ]),
  ].join('\n')
}

function row(label: string, { deliveriesPerS, cpuUs, warmCpuUs, connectionsEach }: Measurement): string {
  return rowOf(label, [
    Math.round(deliveriesPerS).toLocaleString('en'),
    cpuUs.toFixed(1),
    warmCpuUs.toFixed(1),
    connectionsEach.toFixed(4),
  ])
}

function ratios(one: Measurement, other: Measurement): string[] {
  return [(one.cpuUs / other.cpuUs).toFixed(2), (one.warmCpuUs / other.warmCpuUs).toFixed(2)]
}
