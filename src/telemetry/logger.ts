import { fstatSync } from 'node:fs'
import { destination, type DestinationStream, type Logger, pino } from 'pino'
import { timeMember } from './time-member.ts'

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

/**
 * The most bytes that a pipe takes atomically (pipe(7), PIPE_BUF). Larger blocks of several processes on one
 * pipe could be mixed.
 */
const sharedBlockBytes = 4 * 1024
/** The block size if no other process writes to the output. A pipe of 64 KiB holds several such blocks. */
const ownBlockBytes = 16 * 1024
const longestWaitMs = 250
const standardOutput = 1

/**
 * Creates a logger that writes JSON lines to standard output. It writes them in blocks, so that a line per
 * attempt stays cheap. A block waits at most a quarter of a second. Call `flush` before the process ends.
 * `isShared`: other processes write to the same output too.
 */
export function createLogger({ level, isShared = false }: { level: LogLevel; isShared?: boolean }): {
  log: Logger
  flush: () => void
} {
  const blockBytes = isShared && !isFile(standardOutput) ? sharedBlockBytes : ownBlockBytes
  // Writes synchronously, like `process.stdout`: writing to a pipe or a file takes less time than passing the
  // block to a thread and back.
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

/** Returns true if a descriptor is a file. A file takes each write as a whole, however long the write is. */
function isFile(descriptor: number): boolean {
  return fstatSync(descriptor).isFile()
}

/**
 * Collects lines into blocks. Otherwise the stream below would, for every line, go through everything that it
 * holds.
 */
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
