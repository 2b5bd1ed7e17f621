import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import type { Logger } from 'pino'

export type ExaminationOptions = {
  readonly log: Pick<Logger, 'level' | 'info' | 'warn'>
  /** The folder for the profiles. */
  readonly folder: string
  /** How long the process is profiled, in milliseconds. */
  readonly profiledMs?: number
  /** How long the level of the log is at least `debug`, in milliseconds. */
  readonly loudMs?: number
  /** The number of this process among the forked ones of a worker. */
  readonly place?: number | undefined
}

const usualProfiledMs = 30_000
const usualLoudMs = 5 * 60_000
/** A larger profile isn't written, so that it can't fill the disk of a pod. */
const mostBytes = 64 * 1024 * 1024
/** One sample of the heap for so many bytes, on average. */
const heapSampleBytes = 64 * 1024

/**
 * Returns a function that examines the running process: the level of the log becomes `debug` for a while, and
 * a profile of the CPU and one of the heap are written to files. Neither has values of the program, and so no
 * messages and no secrets. While an examination runs, a further call has no effect.
 */
export function createExamination(options: ExaminationOptions): () => Promise<void> {
  const { log, profiledMs = usualProfiledMs } = options
  let isRunning = false
  return async function examine() {
    if (isRunning) return
    isRunning = true
    try {
      raiseLevel(options)
      log.info({ forMs: profiledMs }, 'this process is examined: its CPU and its heap are profiled')
      const files = await profile(options, profiledMs)
      log.info({ files }, 'the profiles are written: open them in the developer tools of Chromium')
    } catch (error) {
      log.warn({ err: error }, 'this process could not be examined')
    } finally {
      isRunning = false
    }
  }
}

/** The numbers of pino's levels up to `debug`. */
const quieter: ReadonlySet<string> = new Set(['info', 'warn', 'error', 'fatal', 'silent'])

function raiseLevel({ log, loudMs = usualLoudMs }: ExaminationOptions): void {
  const before = log.level
  if (!quieter.has(before)) return
  log.level = 'debug'
  log.info({ before, forMs: loudMs }, 'the level of the log is debug for a while')
  setTimeout(() => {
    log.level = before
  }, loudMs).unref()
}

async function profile({ folder, place }: ExaminationOptions, profiledMs: number): Promise<string[]> {
  const { Session } = await import('node:inspector/promises')
  const session = new Session()
  session.connect()
  try {
    await session.post('Profiler.enable')
    await session.post('Profiler.start')
    await session.post('HeapProfiler.startSampling', { samplingInterval: heapSampleBytes })
    await new Promise((resolve) => {
      setTimeout(resolve, profiledMs).unref()
    })
    const { profile: cpu } = await session.post('Profiler.stop')
    const { profile: heap } = await session.post('HeapProfiler.stopSampling')
    mkdirSync(folder, { recursive: true })
    const time = new Date().toISOString().replaceAll(/[:.]/g, '-')
    const name = `sluice-${place === undefined ? '' : `${place}-`}${process.pid}-${time}`
    return [write(join(folder, `${name}.cpuprofile`), cpu), write(join(folder, `${name}.heapprofile`), heap)]
  } finally {
    session.disconnect()
  }
}

function write(file: string, content: object): string {
  const text = JSON.stringify(content)
  if (text.length > mostBytes)
    throw new Error(`${file} would have ${text.length} bytes, so it is not written`)
  writeFileSync(file, text, { mode: 0o600 })
  return file
}
