import process from 'node:process'
import type { Logger } from 'pino'
import { snapshotMetrics } from '../../telemetry/add-up.ts'
import { type Answers, isQuestion, type Question, tell } from './process-link.ts'
import { showReady } from '../start/readiness.ts'
import { StartError } from '../start/start-error.ts'
import { type Member, startMember, type WorkerOptions } from '../worker.ts'

/**
 * Starts a member of the group in one of a worker's forked processes. The process has no port of its own. It
 * answers the questions of the primary.
 */
export async function startForkedWorker(options: WorkerOptions): Promise<void> {
  if (!process.connected) throw new StartError('--process-number is for the processes that a worker starts.')
  const member = await startMember(options)
  process.on('message', (message: unknown) => {
    if (isQuestion(message)) void answer(member, message, options.log)
  })
  await tell({ tell: 'started' })
  options.log.info({ pid: process.pid, tiers: member.tiers }, 'process started')
}

async function answer(member: Member, { ask, id }: Question, log: Pick<Logger, 'flush'>): Promise<void> {
  try {
    const given = await answerTo(member, ask)
    // As `serveTelemetry` does, because the primary's answer is made of this one.
    log.flush()
    await tell({ tell: 'answer', id, answer: given })
  } catch (error) {
    await tell({ tell: 'no answer', id, reason: String(error) })
  }
}

async function answerTo(member: Member, ask: keyof Answers): Promise<Answers[keyof Answers]> {
  switch (ask) {
    case 'metrics':
      member.collect()
      showReady(member.common, 'worker', member.notReady())
      return snapshotMetrics(member.metrics)
    case 'notReady':
      return member.notReady()
  }
}
