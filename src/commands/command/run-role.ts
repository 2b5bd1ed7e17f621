import { tmpdir } from 'node:os'
import process from 'node:process'
import type { Logger } from 'pino'
import { loginWarnings } from '../../config/rules.ts'
import type { Config } from '../../config/schema.ts'
import { sendFailure } from '../../roles/processes/process-link.ts'
import { Parts } from '../../roles/start/parts.ts'
import { stopRequested } from '../../roles/start/shutdown.ts'
import { StartError } from '../../roles/start/start-error.ts'
import { writeError } from './tools.ts'

/** The function that starts a role. Its promise resolves once the role has started. */
export type Role = (options: RoleOptions) => Promise<void>

export type RoleOptions = {
  config: Config
  log: Logger
  /**
   * The collection to which the role adds the parts that it starts. The parts are stopped when the role ends,
   * and also if the role fails to start.
   */
  parts: Parts
  /**
   * Reports an error, and ends the process with exit code 1. If `ended` is given, the process ends only after
   * `ended` has resolved.
   */
  onFatal: (error: Error, ended?: Promise<void>) => void
}

/**
 * The place of a process among several processes that share an output. `primary`: the process that starts the
 * other processes. A number: one of those other processes.
 */
export type ProcessPlace = 'primary' | number

export type RunOptions = {
  readonly place?: ProcessPlace
  /** True: log lines are for a person at a terminal, and not JSON. */
  readonly isForPeople?: boolean
}

/**
 * Starts a role and runs it until SIGINT or SIGTERM. A second signal ends the process at once. If the start
 * fails, or if a signal arrives during the start, the parts that have started are stopped, within a time
 * limit. If a forked process fails, it reports the error to its primary, and doesn't log it. If the primary
 * has ended, the forked process stops in good order.
 */
export async function runRole(
  role: Role,
  config: Config,
  { place, isForPeople = false }: RunOptions = {},
): Promise<never> {
  const isForked = typeof place === 'number'
  const { createLogger } = await import('../../telemetry/logger.ts')
  const logger = createLogger({ level: config.log.level, isShared: place !== undefined, isForPeople })
  const log = isForked ? logger.log.child({ process: place }) : logger.log
  examineOnSignal(log, config, place)
  const parts = new Parts()
  const exit = (code: number): never => {
    logger.flush()
    process.exit(code)
  }
  let failing: Promise<never> | undefined
  // Only the first failure is reported. Later failures are mostly consequences of the first failure, and
  // would mislead.
  const fail = (error: unknown, ended?: Promise<unknown>): Promise<never> =>
    (failing ??= endWith(error, ended))
  async function endWith(error: unknown, ended?: Promise<unknown>): Promise<never> {
    const isReported = isForked && (await sendFailure(error))
    if (!isReported) say(error, log)
    await ended
    return exit(1)
  }
  process.on('uncaughtException', (error) => void fail(error))
  process.on('unhandledRejection', (error) => void fail(error))
  if (!isForked) for (const warning of loginWarnings(config.kafka)) log.warn(warning)
  const stopping = stopRequested(isForked, () => {
    parts.abandon()
    exit(130)
  })
  const onFatal = (error: Error, ended?: Promise<void>) => void fail(error, ended)
  let isStarted: boolean
  try {
    isStarted = await Promise.race([
      role({ config, log, parts, onFatal }).then(() => true),
      stopping.then(() => false),
    ])
  } catch (error) {
    return fail(error, parts.unwind())
  }
  try {
    await stopping
    // Parts that were interrupted in their start get less time, and their errors are no failure of the role.
    await (isStarted ? parts.stop() : parts.unwind())
  } catch (error) {
    return fail(error)
  }
  if (failing !== undefined) return failing
  log.info(isForked ? 'process stopped' : 'stopped')
  return exit(0)
}

/**
 * Examines this process when it gets SIGUSR2. The primary of a worker passes the signal on to its processes
 * (`WorkerProcess`), and isn't examined, because it does nothing itself.
 */
function examineOnSignal(log: Logger, { state }: Config, place: ProcessPlace | undefined): void {
  if (place === 'primary') {
    // Without a listener, the signal would end the process.
    process.on('SIGUSR2', () => undefined)
    return
  }
  let examination: Promise<() => Promise<void>> | undefined
  process.on('SIGUSR2', () => {
    examination ??= import('../../telemetry/examination.ts').then(({ createExamination }) =>
      createExamination({ log, folder: state.folder ?? tmpdir(), place }),
    )
    void examination.then((examine) => examine())
  })
}

/**
 * Reports an error. Prints it on the terminal if its cause is outside of the program. Otherwise writes it to
 * the log.
 */
function say(error: unknown, log: Logger): void {
  if (error instanceof StartError) writeError(`sluice: ${error.message}`)
  else log.fatal({ err: error }, 'sluice can not go on')
}
