import { fstatSync } from 'node:fs'
import { destination, type DestinationStream, type Logger, pino } from 'pino'
import { timeMember } from './time-member.ts'

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

/**
 * The most bytes that are written to a pipe atomically (pipe(7), PIPE_BUF). If several processes wrote larger
 * blocks to one pipe, the blocks could be mixed.
 */
const sharedBlockBytes = 4 * 1024
/**
 * The size of blocks if no other process writes to the output, in bytes. A pipe of 64 KiB has room for
 * several such blocks.
 */
const ownBlockBytes = 16 * 1024
const longestWaitMs = 250
const standardOutput = 1

/**
 * Creates a logger that writes JSON lines to standard output. It writes them in blocks, so that a line for
 * each attempt stays cheap. A block is written after a quarter of a second at the latest. Call `flush` before
 * the process ends. `isShared` is true if other processes write to the same output.
 */
export function createLogger({ level, isShared = false }: { level: LogLevel; isShared?: boolean }): {
  log: Logger
  flush: () => void
} {
  const blockBytes = isShared && !isFile(standardOutput) ? sharedBlockBytes : ownBlockBytes
  // The output is written synchronously, like `process.stdout`. Writing to a pipe or a file takes less time
  // than passing the block to another thread.
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

/**
 * Returns true if a descriptor is a file. A write to a file isn't mixed with other writes, however long it
 * is.
 */
function isFile(descriptor: number): boolean {
  return fstatSync(descriptor).isFile()
}

/**
 * Collects lines into blocks. Without blocks, the output stream would hold single lines. Each time that a
 * line is added, the stream would go through all lines that it holds.
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
