import { measureCapacity } from '../isolation/capacity.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { runLeg } from '../support/leg.ts'
import { messageBytes } from '../support/messages.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { openStage, type ScenePlan, type Stage } from '../support/stage.ts'
import { round } from '../support/statistics.ts'
import { rowOf } from '../support/table.ts'
import { describe, measureByTurns, type Measurement, medianOf } from '../support/turns.ts'
import { senderFor } from '../worker/senders.ts'
import { openSetting } from '../worker/setting.ts'

const batch = { maxMessages: 100, maxWait: '200ms' }
const maxWaitMs = 200
/**
 * In a run, V8 compiles for about a second of CPU. With fewer messages, this would be a large part of what a
 * message in a batch costs.
 */
const usualMessages = 500_000
/** How far the far receiver is, in milliseconds there and back. */
const awayMs = 20
/** To the far receiver, single posts are slow. So it gets this part of the messages. */
const farPart = 1 / 4
const warmupS = 10
/** Messages a second that never fill a batch, so that each of them waits. */
const tricklePerS = 50

const names = ['single', 'batched'] as const
type Pair = Record<(typeof names)[number], Measurement>
type Waits = { perS: number; p50: number; p99: number; messagesEach: number }

/**
 * Measures one destination with batches of 100 and without, in one run by turns: what a message costs the worker,
 * and how many a second come, also over TLS to a receiver that is 20 ms away. Then it measures how long a message
 * takes with batches, at half of the worker's capacity and at a rate that never fills a batch.
 */
export async function runBatchesBenchmark(settings: Settings): Promise<BenchmarkResult> {
  const { runs = 3, messages = usualMessages, seconds = 30, profileDir } = settings
  const near = await measurePair({ runs, messages, profileDir })
  const far = await measurePair({ runs, messages: messages * farPart, awayMs, profileDir })
  const { capacity, half, trickle } = await measureWaits({ messages, seconds, profileDir })
  const figures = {
    messages_ratio: round(near.single.cpuUs / near.batched.cpuUs, 2),
    warm_messages_ratio: round(near.single.warmCpuUs / near.batched.warmCpuUs, 2),
    single_cpu_us: round(near.single.cpuUs, 1),
    batched_cpu_us: round(near.batched.cpuUs, 1),
    far_messages_ratio: round(far.batched.deliveriesPerS / far.single.deliveriesPerS, 2),
    far_cpu_ratio: round(far.single.cpuUs / far.batched.cpuUs, 2),
    far_single_per_s: Math.round(far.single.deliveriesPerS),
    far_batched_per_s: Math.round(far.batched.deliveriesPerS),
    capacity_per_s: Math.round(capacity),
    half_load: figuresOf(half),
    trickle: figuresOf(trickle),
    max_wait_ms: maxWaitMs,
    away_ms: awayMs,
    runs,
    messages,
    message_bytes: messageBytes,
    node: process.version,
  }
  return { table: tableOf({ near, far, half, trickle }), figures }
}

function figuresOf({ perS, p50, p99, messagesEach }: Waits): object {
  return {
    per_s: Math.round(perS),
    p50_ms: round(p50, 1),
    p99_ms: round(p99, 1),
    messages_each: round(messagesEach, 1),
  }
}

async function measurePair({
  runs,
  messages,
  awayMs: answerAfterMs = 0,
  profileDir,
}: {
  runs: number
  messages: number
  awayMs?: number
  profileDir: string | undefined
}): Promise<Pair> {
  const setting = await openSetting({ messages, tls: answerAfterMs > 0, count: 1, report: say })
  const measured = new Map<string, Measurement[]>(names.map((name) => [name, []]))
  try {
    const single = await setting.openPlace('single', { answerAfterMs })
    const batched = await setting.openPlace('batched', { answerAfterMs, settings: { batch } })
    for (let run = 1; run <= runs; run++) {
      const senders = [single, batched].map((place, at) => ({
        ...senderFor('worker', setting, place, { profileDir, processes: 1 }),
        name: names[at] ?? '',
      }))
      for (const [name, measurement] of await measureByTurns(senders, messages)) {
        measured.get(name)?.push(measurement)
        say(`run ${run}${answerAfterMs > 0 ? ', far' : ''}: ${name} ${describe(measurement)}`)
      }
    }
  } finally {
    await setting.close()
  }
  return { single: medianOf(measured.get('single') ?? []), batched: medianOf(measured.get('batched') ?? []) }
}

async function measureWaits({
  messages,
  seconds,
  profileDir,
}: {
  messages: number
  seconds: number
  profileDir: string | undefined
}): Promise<{ capacity: number; half: Waits; trickle: Waits }> {
  const stage = await openStage({ destinations: 1, profileDir, report: say })
  const plan: ScenePlan = { fleet: { count: 1, settings: new Map([[0, { batch }]]) }, variables: {} }
  try {
    const { shared: capacity } = await measureCapacity(stage, { plan, messages, first: 0 })
    say(`capacity ${Math.round(capacity)}/s`)
    const half = await measureWait(stage, plan, { name: 'half load', perS: capacity / 2, seconds })
    const trickle = await measureWait(stage, plan, { name: 'a trickle', perS: tricklePerS, seconds })
    return { capacity, half, trickle }
  } finally {
    await stage.close()
  }
}

async function measureWait(
  stage: Stage,
  plan: ScenePlan,
  { name, perS, seconds }: { name: string; perS: number; seconds: number },
): Promise<Waits> {
  const untilS = warmupS + seconds
  const { report } = await runLeg(stage, {
    name,
    plan,
    streams: [{ first: 0, count: 1, perS, fromS: 0, untilS, order: 'turn' }],
    special: [],
    fromS: warmupS,
    untilS,
    maxLateMs: 100,
    drainS: 30,
  })
  const { latency, inWindow, requests, distinct } = report.others
  if (latency.samples === 0) throw new BenchmarkFailure(`${name}: nothing came`)
  const waits = {
    perS: inWindow / seconds,
    p50: latency.p50,
    p99: latency.p99,
    messagesEach: distinct / requests,
  }
  say(`${name}: ${Math.round(waits.perS)}/s, p50 ${waits.p50.toFixed(1)} p99 ${waits.p99.toFixed(1)} ms`)
  return waits
}

function tableOf({
  near,
  far,
  half,
  trickle,
}: {
  near: Pair
  far: Pair
  half: Waits
  trickle: Waits
}): string {
  return [
    '',
    `messages of ${messageBytes} bytes to one destination; medians`,
    '',
    rowOf('', ['messages/s', 'CPU µs each', 'second half']),
    row('single posts', near.single),
    row('batches of 100', near.batched),
    row(`single, TLS, ${awayMs} ms away`, far.single),
    row('batches, the same', far.batched),
    '',
    rowOf('with batches', ['messages/s', 'p50 ms', 'p99 ms', 'a request']),
    waitRow('half of the capacity', half),
    waitRow('a trickle', trickle),
  ].join('\n')
}

function row(label: string, { deliveriesPerS, cpuUs, warmCpuUs }: Measurement): string {
  return rowOf(label, [
    Math.round(deliveriesPerS).toLocaleString('en'),
    cpuUs.toFixed(1),
    warmCpuUs.toFixed(1),
  ])
}

function waitRow(label: string, { perS, p50, p99, messagesEach }: Waits): string {
  return rowOf(label, [
    Math.round(perS).toLocaleString('en'),
    p50.toFixed(1),
    p99.toFixed(1),
    messagesEach.toFixed(1),
  ])
}
