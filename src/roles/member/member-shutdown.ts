import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Pipeline } from '../../pipeline/pipeline-ports.ts'
import type { Parts } from '../start/parts.ts'
import type { RecordIntake } from './record-intake.ts'
import type { Stalls } from '../start/stalls.ts'
import type { WaitingQueues } from '../../waiting/queues.ts'
import type { GroupConsumer } from '../../kafka/group/consumer.ts'
import type { ShutdownTime } from './shutdown-time.ts'
import { leaveMs } from './shutdown-time.ts'

const lastCommitTries = 10

export type MemberEnd = {
  readonly parts: Parts
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
  readonly shutdownTime: ShutdownTime
  readonly stalls: Pick<Stalls, 'isStopping'>
  readonly consumer: Pick<GroupConsumer, 'quiesce' | 'commit' | 'stop'>
  readonly pipeline: Pick<Pipeline, 'held' | 'inFlight' | 'drain'>
  readonly intake: Pick<RecordIntake, 'stop'>
  readonly waiting: Pick<WaitingQueues, 'flush'>
  /**
   * Stops all parts that write records for units, but not the pipeline. These parts are stopped once more
   * when the role's parts stop.
   */
  readonly stopWriters: () => Promise<unknown>
}

/**
 * Adds functions to `parts` that end a member. They run before the parts that were added earlier are stopped.
 * They finish and commit the member's deliveries in flight, and then leave the group.
 */
export function deferEnd({ parts, log, shutdownTime, stalls, ...member }: MemberEnd): void {
  const { consumer, pipeline, intake, waiting, stopWriters } = member
  parts.defer(async () => {
    if (!(await shutdownTime.within(leave(consumer, log))))
      log.error('Kafka did not answer in time: what was settled since the last commit will be repeated')
  })
  parts.defer(async () => {
    stalls.isStopping = true
    log.info({ held: pipeline.held.records, inFlight: pipeline.inFlight }, 'draining')
    consumer.quiesce()
    intake.stop()
    // The last commit may only be made when the marks of the messages that were delivered are written.
    const ended = Promise.all([pipeline.drain(), stopWriters()]).then(() => waiting.flush())
    if (!(await shutdownTime.drained(ended)))
      log.warn(
        { held: pipeline.held.records },
        'stopping before all deliveries were finished: the rest will be repeated',
      )
  })
}

async function leave(consumer: MemberEnd['consumer'], log: MemberEnd['log']): Promise<void> {
  // The commit is tried several times, because the coordinator refuses commits for a moment during a
  // rebalance.
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
