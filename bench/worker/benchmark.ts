import { measure, type Measurement } from '../support/measure.ts'
import { messageBytes } from '../support/messages.ts'
import { median, round } from '../support/statistics.ts'
import { senderFor, type SenderName, senderNames } from './senders.ts'
import { inFlight, openSetting, partitions } from './setting.ts'

/**
 * What a delivery costs the worker, beside what it costs undici alone and a program of kafkajs and undici that
 * does nothing else. All are measured in one run, by turns, so that the machine is the same for all.
 */
export async function runWorkerBenchmark({
  runs,
  messages,
  profileDir,
}: {
  runs: number
  messages: number
  profileDir: string | undefined
}): Promise<{ table: string; figures: object }> {
  const measured: Record<SenderName, Measurement[]> = { dispatch: [], floor: [], worker: [] }
  const setting = await openSetting(messages, say)
  try {
    for (let run = 1; run <= runs; run++) {
      for (const name of senderNames) {
        const { receiver } = setting
        const sender = senderFor(name, setting, profileDir)
        const measurement = await measure({ name, receiver, expected: messages, ...sender })
        measured[name].push(measurement)
        say(`run ${run}: ${name} ${describe(measurement)}`)
      }
    }
  } finally {
    await setting.close()
  }
  const medians = {
    dispatch: medianOf(measured.dispatch),
    floor: medianOf(measured.floor),
    worker: medianOf(measured.worker),
  }
  return { table: tableOf(medians, runs, messages), figures: figuresOf(medians, runs, messages) }
}

type Medians = Record<SenderName, Measurement>

function medianOf(all: readonly Measurement[]): Measurement {
  const of = (pick: (one: Measurement) => number): number => median(all.map(pick))
  return {
    deliveriesPerS: of(({ deliveriesPerS }) => deliveriesPerS),
    cpuUs: of(({ cpuUs }) => cpuUs),
    warmDeliveriesPerS: of(({ warmDeliveriesPerS }) => warmDeliveriesPerS),
    warmCpuUs: of(({ warmCpuUs }) => warmCpuUs),
  }
}

function figuresOf({ dispatch, floor, worker }: Medians, runs: number, messages: number): object {
  return {
    deliveries_per_s: Math.round(worker.deliveriesPerS),
    cpu_us: round(worker.cpuUs, 1),
    dispatch_cpu_us: round(dispatch.cpuUs, 1),
    ratio: round(worker.cpuUs / dispatch.cpuUs, 2),
    floor_cpu_us: round(floor.cpuUs, 1),
    dispatch_per_s: Math.round(dispatch.deliveriesPerS),
    floor_deliveries_per_s: Math.round(floor.deliveriesPerS),
    warm: {
      deliveries_per_s: Math.round(worker.warmDeliveriesPerS),
      cpu_us: round(worker.warmCpuUs, 1),
      dispatch_cpu_us: round(dispatch.warmCpuUs, 1),
      floor_cpu_us: round(floor.warmCpuUs, 1),
      ratio: round(worker.warmCpuUs / dispatch.warmCpuUs, 2),
    },
    runs,
    messages,
    message_bytes: messageBytes,
    partitions,
    in_flight: inFlight,
    node: process.version,
  }
}

const labels: Record<SenderName, string> = {
  dispatch: 'undici dispatch alone',
  floor: 'kafkajs + dispatch, no more',
  worker: 'sluice worker',
}

function tableOf(medians: Medians, runs: number, messages: number): string {
  const { dispatch, floor, worker } = medians
  const rows = senderNames.map((name) => {
    const { deliveriesPerS, cpuUs, warmCpuUs } = medians[name]
    const cells = [Math.round(deliveriesPerS).toLocaleString('en'), cpuUs.toFixed(1), warmCpuUs.toFixed(1)]
    return rowOf(labels[name], cells)
  })
  return [
    '',
    `${messages.toLocaleString('en')} messages of ${messageBytes} bytes, ${partitions} partitions, ${inFlight} in flight;`,
    `medians of ${runs} runs, Node ${process.version}`,
    '',
    rowOf('', ['deliveries/s', 'CPU µs each', 'second half']),
    ...rows,
    '',
    rowOf('worker / dispatch', ['', ...ratios(worker, dispatch)]),
    rowOf('worker / floor', ['', ...ratios(worker, floor)]),
  ].join('\n')
}

function ratios(one: Measurement, other: Measurement): string[] {
  return [(one.cpuUs / other.cpuUs).toFixed(2), (one.warmCpuUs / other.warmCpuUs).toFixed(2)]
}

function rowOf(label: string, cells: readonly string[]): string {
  return `${label.padEnd(28)}${cells.map((cell) => cell.padStart(14)).join('')}`
}

function describe({ deliveriesPerS, cpuUs, warmCpuUs }: Measurement): string {
  return `${Math.round(deliveriesPerS)}/s, ${cpuUs.toFixed(1)} µs of CPU each, ${warmCpuUs.toFixed(1)} in the second half`
}

function say(line: string): void {
  console.error(line)
}
