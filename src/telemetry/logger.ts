import { destination, type Logger, pino, stdTimeFunctions } from 'pino'

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

/**
 * Logs JSON lines to standard output, written in blocks so that a line an attempt stays cheap; a block waits
 * at most a quarter of a second. `flush` before the process ends.
 */
export function createLogger({ level }: { level: LogLevel }): { log: Logger; flush: () => void } {
  const output = destination({ dest: 1, sync: false, minLength: 8 * 1024, periodicFlush: 250 })
  const log = pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    output,
  )
  return { log, flush: () => output.flushSync() }
}
