import { setTimeout as delay } from 'node:timers/promises'
import { monotonicUs } from '../support/clock.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { preload } from '../support/preload.ts'
import { startProducer } from '../support/producer-process.ts'
import type { Scene, ScenePlan, Stage } from '../support/stage.ts'
import { stampedMessage } from '../support/stamped-messages.ts'
import { messagesOf, sourceIdOf, type Stream } from '../support/streams.ts'
import { sharedSecret } from '../support/worker-variables.ts'

const idleTimeoutMs = 30_000
const pollMs = 200

/**
 * Settings that keep the worker from parking messages when its buffer is full. The capacity is measured
 * with a full buffer, and no destination is to blame for it.
 */
const patience = { SLUICE_DELIVERY_LANE_PATIENCE: '1m', SLUICE_DELIVERY_LANE_WAIT: '10m' }

/**
 * Deliveries a second. `alone`: with all messages on the topic before the worker starts. `shared`: while
 * messages are produced at the rate `alone`.
 */
export type Capacity = { alone: number; shared: number }

/**
 * Measures the capacity of a worker on this machine, for the destinations from `first` on. First, the
 * worker delivers `messages` messages that are on the topic already. Then it delivers while messages are
 * produced at the rate that was just measured. The second figure is closer to the benchmark, in which Kafka
 * and the producer also need a part of the machine.
 */
export async function measureCapacity(
  stage: Stage,
  options: { plan: ScenePlan; messages: number; first: number },
): Promise<Capacity> {
  const plan = { ...options.plan, variables: { ...options.plan.variables, ...patience } }
  const alone = await measureAlone(stage, { ...options, plan })
  return { alone, shared: await measureShared(stage, { ...options, plan, perS: alone }) }
}

/**
 * Measures the first figure alone. `beside` starts what runs beside the worker, and returns a function that
 * stops it.
 */
export async function measureAlone(
  stage: Stage,
  {
    plan,
    messages,
    first,
    beside,
  }: {
    plan: ScenePlan
    messages: number
    first: number
    beside?: (scene: Scene) => Promise<() => Promise<void>>
  },
): Promise<number> {
  const scene = await stage.setScene(plan)
  const count = plan.fleet.count - first
  await preload(stage.brokers, scene.topic, messages, (index) => ({
    ...stampedMessage(index, 0),
    headers: { 'source-id': sourceIdOf(first + (index % count)) },
  }))
  const stopBeside = await beside?.(scene)
  stage.recorder.begin({ messages, secret: sharedSecret, special: [] })
  const worker = await scene.startWorker()
  try {
    await allArrived(stage, messages)
    await worker.stop()
  } finally {
    await worker.abandon()
    await stopBeside?.()
  }
  return (await stage.recorder.report({ fromUs: 0, untilUs: 0 })).secondHalfPerS
}

const sharedS = 12

async function measureShared(
  stage: Stage,
  { plan, perS, first }: { plan: ScenePlan; perS: number; first: number },
): Promise<number> {
  const scene = await stage.setScene(plan)
  const worker = await scene.startWorker()
  const count = plan.fleet.count - first
  const stream: Stream = { first, count, perS, fromS: 0, untilS: sharedS, order: 'turn' }
  const { brokers, recorder } = stage
  const producer = await startProducer({ brokers, topic: scene.topic, streams: [stream], fromS: 0 })
  try {
    recorder.begin({ messages: messagesOf(stream), secret: sharedSecret, special: [] })
    const startUs = monotonicUs()
    const { errors } = await producer.run(startUs)
    if (errors.length > 0)
      throw new BenchmarkFailure(`capacity: Kafka refused messages: ${errors.join('; ')}`)
    const endUs = monotonicUs()
    const window = { fromUs: startUs + (endUs - startUs) / 2, untilUs: endUs }
    const { others } = await recorder.report(window)
    await worker.stop()
    return (others.inWindow / (window.untilUs - window.fromUs)) * 1_000_000
  } finally {
    await producer.stop()
    await worker.abandon()
  }
}

async function allArrived({ recorder }: Stage, messages: number): Promise<void> {
  let progressAtMs = performance.now()
  for (let come = 0; come < messages;) {
    await delay(pollMs)
    const { others } = await recorder.progress()
    if (others > come) progressAtMs = performance.now()
    come = others
    if (performance.now() - progressAtMs > idleTimeoutMs) {
      throw new BenchmarkFailure(
        `capacity: nothing came for ${idleTimeoutMs / 1_000} s with ${come} of ${messages} messages delivered`,
      )
    }
  }
}
