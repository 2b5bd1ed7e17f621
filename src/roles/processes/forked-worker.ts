import process from 'node:process'
import { snapshotMetrics } from '../../telemetry/add-up.ts'
import { type Answers, isQuestion, tell } from './process-link.ts'
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
    if (isQuestion(message)) void answer(member, message.ask, message.id)
  })
  await tell({ tell: 'started' })
  options.log.info({ pid: process.pid, tiers: member.tiers }, 'process started')
}

async function answer(member: Member, ask: keyof Answers, id: number): Promise<void> {
  try {
    await tell({ tell: 'answer', id, answer: await answerTo(member, ask) })
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
