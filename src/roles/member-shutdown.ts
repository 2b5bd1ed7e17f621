import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { GroupConsumer } from '../kafka/consumer.ts'
import { within } from '../kafka/within.ts'
import type { Pipeline } from '../pipeline/pipeline-ports.ts'
import type { Parts } from './parts.ts'
import type { RecordIntake } from './record-intake.ts'
import type { Stalls } from './stalls.ts'

/** What is kept of the shutdown timeout for the last commit and for leaving the group. */
const leaveMs = 1_000
const lastCommitTries = 10

/** The time that a member has to stop: its parts share it. */
export class Ending {
  readonly #timeoutMs: number
  #untilMs: number | undefined

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /** The first of it. False where `work` isn't done when no more is left than it takes to leave. */
  async drained(work: Promise<unknown>): Promise<boolean> {
    const deadlineMs = performance.now() + this.#timeoutMs
    const isDone = await within(Math.max(0, this.#timeoutMs - leaveMs), work)
    this.#untilMs = Math.max(deadlineMs, performance.now() + leaveMs)
    return isDone
  }

  /** The rest of it. False where `work` isn't done by the end. */
  within(work: Promise<unknown>): Promise<boolean> {
    this.#untilMs ??= performance.now() + leaveMs
    return within(Math.max(0, this.#untilMs - performance.now()), work)
  }
}

export type MemberEnd = {
  readonly parts: Parts
  readonly log: Logger
  readonly ending: Ending
  readonly stalls: Stalls
  readonly consumer: GroupConsumer
  readonly pipeline: Pipeline
  readonly intake: RecordIntake
  /** Stops what else writes for units; called again by its own parts. */
  readonly stopWriters: () => Promise<unknown>
}

/**
 * Has a member end before its parts do, in good order: what is in flight is finished, then committed, and the
 * group is left.
 */
export function deferEnd({ parts, log, ending, stalls, ...member }: MemberEnd): void {
  const { consumer, pipeline, intake, stopWriters } = member
  parts.defer(async () => {
    if (!(await ending.within(leave(consumer, log))))
      log.error('Kafka did not answer in time: what was settled since the last commit will be repeated')
  })
  parts.defer(async () => {
    stalls.isStopping = true
    log.info({ held: pipeline.held.records, inFlight: pipeline.inFlight }, 'draining')
    consumer.quiesce()
    intake.stop()
    if (!(await ending.drained(Promise.all([pipeline.drain(), stopWriters()]))))
      log.warn(
        { held: pipeline.held.records },
        'stopping before all deliveries were finished: the rest will be repeated',
      )
  })
}

async function leave(consumer: GroupConsumer, log: Logger): Promise<void> {
  // A rebalance refuses a commit for a moment.
  for (let tries = 1; tries <= lastCommitTries; tries++) {
    try {
      await consumer.commit()
      break
    } catch (error) {
      log.warn({ err: error, tries }, 'the last commit was refused')
      await delay(leaveMs / lastCommitTries)
    }
  }
  await consumer.stop()
}
