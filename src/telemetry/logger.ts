import { fstatSync } from 'node:fs'
import { destination, type DestinationStream, type Logger, pino } from 'pino'
import { timeMember } from './time-member.ts'

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

/**
 * What a pipe takes as a whole (pipe(7), PIPE_BUF): lines of several processes on one pipe must not be mixed.
 */
const sharedBlockBytes = 4 * 1024
/** Where no one else writes. It fits into a pipe, of 64 KiB, several times. */
const ownBlockBytes = 16 * 1024
const longestWaitMs = 250
const standardOutput = 1

/**
 * Logs JSON lines to standard output, written in blocks so that a line an attempt stays cheap; a block waits
 * at most a quarter of a second. `flush` before the process ends. `isShared`: other processes write to the
 * same output.
 */
export function createLogger({ level, isShared = false }: { level: LogLevel; isShared?: boolean }): {
  log: Logger
  flush: () => void
} {
  const blockBytes = isShared && !isFile(standardOutput) ? sharedBlockBytes : ownBlockBytes
  // Synchronous, as `process.stdout` is: a write to a pipe or a file takes less than its way through a thread
  // and back.
  const output = destination({ dest: standardOutput, sync: true, maxWrite: blockBytes })
  const blocks = new Blocks(output, blockBytes)
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

/** A file takes what one process writes as a whole, however long it is. */
function isFile(descriptor: number): boolean {
  return fstatSync(descriptor).isFile()
}

/** Collects lines: the stream below looks at all that it holds for each line that it is given. */
class Blocks implements DestinationStream {
  readonly #output: DestinationStream
  readonly #maxBytes: number
  #block = ''
  #bytes = 0
  #timer: NodeJS.Timeout | undefined

  constructor(output: DestinationStream, maxBytes: number) {
    this.#output = output
    this.#maxBytes = maxBytes
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line)
    if (this.#bytes + bytes > this.#maxBytes) this.flush()
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
