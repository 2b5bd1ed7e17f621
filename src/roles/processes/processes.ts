import process from 'node:process'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { addUpMetrics } from '../../telemetry/add-up.ts'
import type { Probes } from '../../telemetry/probe-server.ts'
import { openKafka } from '../start/ask-kafka.ts'
import { refuseFaultyCatalog } from '../catalog/open-catalog.ts'
import type { Parts } from '../start/parts.ts'
import { StartError } from '../start/start-error.ts'
import { type StoppedProcess, stopInTime } from './stop-process.ts'
import { openTelemetry, starting } from '../start/telemetry.ts'
import { processCount } from './process-count.ts'
import { type Ending, WorkerProcess } from './worker-process.ts'

export type ProcessesOptions = {
  config: Config
  log: Logger
  parts: Parts
  /**
   * Called when a process has failed and the other processes are being stopped. The primary should exit with
   * an error once `ended` has resolved.
   */
  onFatal: (error: Error, ended: Promise<void>) => void
}

/**
 * How long a process may take to answer, in milliseconds. It is less than 5 s, because probes and scrapes
 * wait no longer than that.
 */
const answerWithinMs = 4_000
/**
 * Starts a primary, and several processes that are members of the group. The primary reads no records. It
 * forks the processes, passes signals on, and answers probes and scrapes for all processes on one port. When
 * one process fails, the primary stops the other processes in good order. It restarts no process.
 */
export async function startProcesses({ config, log, parts, onFatal }: ProcessesOptions): Promise<void> {
  const processes: WorkerProcess[] = []
  const state: State = { isForked: false, isStopping: false, hasFailed: false }
  const port = await openTelemetry({ config, log, parts }, probesOf(processes, state))

  // The catalog and Kafka are checked before the processes are forked. If the catalog is faulty or Kafka
  // can't be used, none of the processes could start.
  await refuseFaultyCatalog(config)
  await openKafka(config, log, 'worker')

  function onOverdue({ number }: StoppedProcess): void {
    log.error({ process: number }, 'a process did not stop in time: killing it')
  }
  function take(one: WorkerProcess, ending: Ending): void {
    if (state.hasFailed || (state.isStopping && isOrderly(ending))) return
    state.hasFailed = true
    onFatal(errorOf(one, ending), parts.stop())
  }
  parts.add({
    async stop() {
      state.isStopping = true
      const { timeoutMs } = config.shutdown
      await Promise.all(processes.map((one) => stopInTime(one, timeoutMs, onOverdue)))
    },
    abandon() {
      for (const one of processes) one.kill()
    },
  })
  for (let number = 1; number <= processCount(config); number++) {
    const one = new WorkerProcess(number)
    processes.push(one)
    void one.ended.then((ending) => take(one, ending))
  }
  process.on('SIGUSR2', () => {
    for (const one of processes) one.examine()
  })
  state.isForked = true
  void Promise.all(processes.map(({ started }) => started)).then(() => {
    log.info({ port, processes: processes.length }, 'worker started')
  })
}

type State = {
  /** True once the processes are forked. Until then the catalog and Kafka are checked. */
  isForked: boolean
  isStopping: boolean
  hasFailed: boolean
}

function probesOf(processes: readonly WorkerProcess[], state: Readonly<State>): Probes {
  const askAll = <Ask extends 'metrics' | 'notReady'>(ask: Ask) =>
    Promise.all(processes.map(async (one) => ({ one, answered: await one.ask(ask, answerWithinMs) })))
  return {
    async metrics() {
      if (!state.isForked) return { ok: false, reasons: [starting] }
      const all = await askAll('metrics')
      const reasons = all.flatMap(({ answered }) => (answered.ok ? [] : [answered.reason]))
      if (reasons.length > 0) return { ok: false, reasons }
      const snapshots = all.flatMap(({ answered }) => (answered.ok ? [answered.answer] : []))
      return { ok: true, text: await addUpMetrics(snapshots) }
    },
    async notLive() {
      const all = await askAll('notReady')
      return all.flatMap(({ one, answered }) => (answered.ok || one.isStarting ? [] : [answered.reason]))
    },
    async notReady() {
      if (state.isStopping) return ['stopping']
      if (!state.isForked) return [starting]
      const all = await askAll('notReady')
      return all.flatMap(({ one, answered }) => {
        if (!answered.ok) return [answered.reason]
        return answered.answer.map((reason) => `process ${one.number}: ${reason}`)
      })
    },
  }
}

/**
 * Returns true if a process has ended in good order. This includes a process that was killed by SIGTERM. Such
 * a process had not begun to handle signals, so it had nothing to finish.
 */
function isOrderly({ code, signal }: Ending): boolean {
  return code === 0 || signal === 'SIGTERM'
}

function errorOf({ name }: WorkerProcess, { code, signal, failure }: Ending): Error {
  // An error of the start is the same for all of the processes. So it is reported once, in the words that a
  // worker with one process uses.
  if (failure?.isStartError === true) return new StartError(failure.message)
  if (failure !== undefined) {
    const cause = Object.assign(new Error(failure.message), { stack: failure.stack })
    return new Error(`${name} failed`, { cause })
  }
  return new Error(
    signal === null ? `${name} ended with exit code ${code}` : `${name} was killed by ${signal}`,
  )
}
