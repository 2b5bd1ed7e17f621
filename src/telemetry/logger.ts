import { destination, type DestinationStream, type Logger, pino } from 'pino'
import { timeMember } from './time-member.ts'

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

/** What a pipe takes as a whole (pipe(7), PIPE_BUF): lines of several processes on one pipe must not be mixed. */
const maxWriteBytes = 4096
const longestWaitMs = 250

/**
 * Logs JSON lines to standard output, written in blocks so that a line an attempt stays cheap; a block waits
 * at most a quarter of a second. `flush` before the process ends.
 */
export function createLogger({ level }: { level: LogLevel }): { log: Logger; flush: () => void } {
  // Synchronous, as `process.stdout` is: a write to a pipe or a file takes less than its way through a thread and back.
  const output = destination({ dest: 1, sync: true, maxWrite: maxWriteBytes })
  const blocks = new Blocks(output)
  const log = pino(
    { level, base: null, timestamp: timeMember, formatters: { level: (label) => ({ level: label }) } },
    blocks,
  )
  return {
    log,
    flush() {
      blocks.flush()
      output.flushSync()
    },
  }
}

/** Collects lines: the stream below looks at all that it holds for each line that it is given. */
class Blocks implements DestinationStream {
  readonly #output: DestinationStream
  #block = ''
  #bytes = 0
  #timer: NodeJS.Timeout | undefined

  constructor(output: DestinationStream) {
    this.#output = output
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line)
    if (this.#bytes + bytes > maxWriteBytes) this.flush()
    this.#block += line
    this.#bytes += bytes
    this.#timer ??= setTimeout(() => this.flush(), longestWaitMs).unref()
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#block === '') return
    const block = this.#block
    this.#block = ''
    this.#bytes = 0
    this.#output.write(block)
  }
}
