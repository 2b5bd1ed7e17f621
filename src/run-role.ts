import process from 'node:process'
import type { Logger } from 'pino'
import type { Config } from './config/schema.ts'
import { tellFailure } from './roles/forked-worker.ts'
import type { Running } from './roles/running.ts'
import { StartError } from './roles/start-error.ts'
import { createLogger } from './telemetry/logger.ts'

export type Role = (options: RoleOptions) => Promise<Running>

export type RoleOptions = {
  config: Config
  log: Logger
  /** Says so, and ends the process with exit code 1: at once, or when `ended` has resolved. */
  onFatal: (error: Error, ended?: Promise<void>) => void
}

/** Under `npx` and `npm run` one Ctrl-C may arrive twice, from the terminal and from npm: that isn't a second one. */
const secondSignalAfterMs = 1_000

/** Where a process is one of several with one output: the one that starts the others, or the number of one of those. */
export type Standing = 'primary' | number

/**
 * Starts a role and runs it until SIGINT or SIGTERM; a second signal doesn't wait. One of several processes tells its
 * primary why it ends, instead of saying so itself, and stops in good order when the primary is gone.
 */
export async function runRole(role: Role, config: Config, standing?: Standing): Promise<never> {
  const isForked = typeof standing === 'number'
  const logger = createLogger({ level: config.log.level, isShared: standing !== undefined })
  const log = isForked ? logger.log.child({ process: standing }) : logger.log
  let running: Running | undefined
  let exitCode = 0
  const exit = (code: number): never => {
    logger.flush()
    process.exit(code)
  }
  const fail = async (error: unknown, ended?: Promise<void>): Promise<never> => {
    exitCode = 1
    const isTold = isForked && (await tellFailure(error))
    if (!isTold) say(error, log)
    if (ended !== undefined) await ended
    return exit(1)
  }
  process.on('uncaughtException', (error) => void fail(error))
  process.on('unhandledRejection', (error) => void fail(error))
  const stopping = stopRequested(isForked, () => {
    running?.abandon?.()
    exit(130)
  })
  try {
    const onFatal = (error: Error, ended?: Promise<void>) => void fail(error, ended)
    // A signal during the start finds nothing taken yet: there is nothing to finish.
    running = (await Promise.race([role({ config, log, onFatal }), stopping])) ?? undefined
    await stopping
    await running?.stop()
  } catch (error) {
    if (isForked) return fail(error)
    logger.flush()
    throw error
  }
  return exit(exitCode)
}

/** Resolves at the first SIGINT or SIGTERM, and, for one of several processes, when its primary is gone. */
function stopRequested(isForked: boolean, onSecond: () => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let sinceMs: number | undefined
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (performance.now() - (sinceMs ?? Infinity) >= secondSignalAfterMs) onSecond()
      sinceMs ??= performance.now()
      resolve()
    })
  }
  if (isForked && process.connected) process.once('disconnect', resolve)
  else if (isForked) resolve()
  return promise
}

/** To the person at the terminal when something around the program is in the way; else into the log. */
function say(error: unknown, log: Logger): void {
  if (error instanceof StartError) process.stderr.write(`sluice: ${error.message}\n`)
  else log.fatal({ err: error }, 'sluice can not go on')
}
