import { createReadStream, type Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import process from 'node:process'
import type { Progress } from '../../roles/start/progress.ts'
import { StartError } from '../../roles/start/start-error.ts'

/** The input of a command: a file, or standard input. */
export type UpstreamInput = {
  /** The file's name for messages, as it was given. */
  readonly name: string
  /** The size of the input. `undefined` if it is unknown. */
  readonly bytes: number | undefined
  /** The time of the file's last change, in epoch milliseconds. `undefined` for standard input. */
  readonly modifiedMs: number | undefined
  readonly chunks: AsyncIterable<Buffer>
}

/** Opens a file. With `-`, opens standard input. If standard input is a terminal, asks the user to type. */
export async function openInput(file: string): Promise<UpstreamInput> {
  if (file === '-') {
    if (process.stdin.isTTY)
      process.stderr.write('Reading from the terminal, one item a line. Ctrl-D ends the input.\n')
    return { name: 'standard input', bytes: undefined, modifiedMs: undefined, chunks: process.stdin }
  }
  try {
    const stats = await stat(file)
    if (stats.isDirectory())
      throw new StartError(`${file} is a folder: name a file, or - for standard input.`)
    const isFile = stats.isFile()
    return {
      name: file,
      bytes: isFile ? stats.size : undefined,
      modifiedMs: isFile ? stats.mtimeMs : undefined,
      chunks: isFile ? unchangedChunksOf(file, stats) : chunksOf(file),
    }
  } catch (error) {
    const code = systemCode(error)
    if (code === undefined) throw error
    throw new StartError(`${file} can not be read (${code}): name a file, or - for standard input.`, {
      cause: error,
    })
  }
}

const chunkBytes = 256 * 1024

/**
 * Reads the file in chunks. Opens the file only when somebody reads the first chunk, because a stream that
 * fails before somebody listens to its errors would end the process.
 */
async function* chunksOf(file: string): AsyncIterable<Buffer> {
  yield* createReadStream(file, { highWaterMark: chunkBytes })
}

/**
 * Reads the file in chunks. Throws at the end if another program has written to the file meanwhile, because
 * then a part of it may be missing. `before` are the facts about the file when it was opened.
 */
async function* unchangedChunksOf(file: string, before: Stats): AsyncIterable<Buffer> {
  let bytes = 0
  for await (const chunk of chunksOf(file)) {
    bytes += chunk.length
    yield chunk
  }
  const after = await stat(file)
  const isSame = after.size === before.size && after.mtimeMs === before.mtimeMs && bytes === before.size
  if (isSame) return
  throw new StartError(
    `${file} was written while it was read (${before.size} bytes before, ${bytes} read, ${after.size} now): run the command again when the file is complete. Nothing was sent.`,
  )
}

/**
 * Calls `work`, which reads a file and writes the content to a spool file. Turns errors of the system into
 * errors that are shown without a stack.
 */
export async function readingInput<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const code = systemCode(error)
    if (code === undefined) throw error
    throw new StartError(
      code === 'ENOSPC'
        ? 'The disk is full: users are kept in the folder for temporary files, set TMPDIR to one with more room.'
        : `${name} can not be read to its end (${code}).`,
      { cause: error },
    )
  }
}

/**
 * Reads the lines of a file with `read`. At the first faulty line, abandons `progress` and throws. By then,
 * nothing has been sent.
 */
export async function readingLines(
  { name }: UpstreamInput,
  progress: Progress,
  read: () => Promise<{ ok: true } | { ok: false; fault: { line: number; problem: string } }>,
): Promise<void> {
  try {
    const all = await readingInput(name, read)
    if (all.ok) return
    throw new StartError(`${name}, line ${all.fault.line}: ${all.fault.problem}. Nothing was sent.`)
  } catch (error) {
    progress.abandon()
    throw error
  }
}

function systemCode(error: unknown): string | undefined {
  const isSystemError = error instanceof Error && 'code' in error && 'syscall' in error
  return isSystemError && typeof error.code === 'string' ? error.code : undefined
}
