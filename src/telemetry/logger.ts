import { fstatSync, writeSync } from 'node:fs'
import { type DestinationStream, type Logger, pino } from 'pino'
import { printable } from '../message/printable.ts'
import { LinesForPeople } from './lines-for-people.ts'
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
const standardError = 2

export type LoggerOptions = {
  level: LogLevel
  /** True if other processes write to the same output. */
  isShared?: boolean
  /**
   * True if the lines go to standard error. A command does this, because its results go to standard output.
   */
  isOfCommand?: boolean
  /** True: the lines are for a person at a terminal, and not JSON. */
  isForPeople?: boolean
}

/**
 * Creates a logger that writes JSON lines to standard output. It writes them in blocks, so that a line for
 * each attempt stays cheap. A block is written after a quarter of a second at the latest. Call `flush` before
 * the process ends. If the output can't be written, for example because the disk is full, lines are lost and
 * the process goes on.
 */
export function createLogger({
  level,
  isShared = false,
  isOfCommand = false,
  isForPeople = false,
}: LoggerOptions): {
  log: Logger
  flush: () => void
} {
  const descriptor = isOfCommand ? standardError : standardOutput
  const blockBytes = isShared && !isFile(descriptor) ? sharedBlockBytes : ownBlockBytes
  const output = new Output(descriptor)
  const people = isForPeople ? linesForPeople(output) : undefined
  const writeOut = (block: Buffer): void =>
    people === undefined ? output.writeBytes(block) : people.write(block.toString())
  const blocks = new Blocks(writeOut, blockBytes)
  const log = pino(
    { level, base: null, timestamp: timeMember, formatters: { level: (label) => ({ level: label }) } },
    blocks,
  )
  return { log, flush: () => blocks.flush() }
}

function linesForPeople(output: DestinationStream): DestinationStream {
  return new LinesForPeople(output, { hasColours: process.stdout.isTTY && process.stdout.hasColors() })
}

/**
 * Returns true if a descriptor is a file. A write to a file isn't mixed with other writes, however long it
 * is.
 */
function isFile(descriptor: number): boolean {
  return fstatSync(descriptor).isFile()
}

/** How long to wait before a pipe that was full is written again, in milliseconds. */
const fullPipeMs = 100
const sleeper = new Int32Array(new SharedArrayBuffer(4))

/**
 * Writes to a descriptor synchronously, like `process.stdout`. Writing to a pipe or a file takes less time
 * than passing the block to another thread. A block that can't be written is lost.
 */
class Output implements DestinationStream {
  readonly #descriptor: number
  #isFailing = false

  constructor(descriptor: number) {
    this.#descriptor = descriptor
  }

  write(block: string): void {
    this.writeBytes(Buffer.from(block))
  }

  writeBytes(block: Buffer): void {
    let rest = block
    while (rest.length > 0) {
      try {
        rest = rest.subarray(writeSync(this.#descriptor, rest))
        this.#isFailing = false
      } catch (error) {
        const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
        if (code !== 'EAGAIN' && code !== 'EBUSY') return this.#lose(code)
        Atomics.wait(sleeper, 0, 0, fullPipeMs)
      }
    }
  }

  /** Reports once that lines are lost. If nobody reads the log any more (EPIPE), this is no trouble. */
  #lose(code: string): void {
    if (code !== 'EPIPE' && !this.#isFailing)
      process.stderr.write(`sluice: the log can not be written (${code}): lines are lost until it can be.\n`)
    this.#isFailing = true
  }
}

const del = '\u007f'

/** Collects lines of JSON into blocks, because a write costs much more than a line. */
class Blocks implements DestinationStream {
  readonly #writeOut: (block: Buffer) => void
  readonly #maxBytes: number
  /**
   * All blocks are made in this buffer, one after the other. It is longer than a block, so that a line that
   * isn't ASCII, and has up to three times as many bytes as characters, is never cut off.
   */
  readonly #room: Buffer
  #bytes = 0
  #timer: NodeJS.Timeout | undefined

  constructor(writeOut: (block: Buffer) => void, maxBytes: number) {
    this.#writeOut = writeOut
    this.#maxBytes = maxBytes
    this.#room = Buffer.allocUnsafeSlow(2 * maxBytes)
  }

  write(json: string): void {
    this.#timer ??= setTimeout(() => this.flush(), longestWaitMs).unref()
    if (this.#bytes + json.length > this.#maxBytes) this.#writeBlock()
    const bytes = json.length > this.#maxBytes / 2 ? -1 : this.#room.write(json, this.#bytes)
    // JSON has escaped all that is unusual in ASCII, except DEL.
    if (bytes === json.length && !json.includes(del)) this.#bytes += bytes
    else this.#add(Buffer.from(printable(json)))
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#writeBlock()
  }

  #add(line: Buffer): void {
    if (this.#bytes + line.length > this.#maxBytes) this.#writeBlock()
    if (line.length > this.#maxBytes) this.#writeOut(line)
    else this.#bytes += line.copy(this.#room, this.#bytes)
  }

  #writeBlock(): void {
    if (this.#bytes === 0) return
    const block = this.#room.subarray(0, this.#bytes)
    this.#bytes = 0
    this.#writeOut(block)
  }
}
