import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { inject } from 'vitest'
import { noteOutput } from '../support/emitted-lines.ts'
import { until } from '../support/until.ts'

export type Up = {
  /** The text that `sluice up` has written to standard error so far. */
  said: string
  broker: string
  /** The origin of the gateway that `sluice up` has started. */
  origin: string
  /**
   * Sends the signal of Ctrl-C, which goes to the whole process group. Returns the exit code, and how long
   * the exit took in milliseconds.
   */
  interrupt: () => Promise<{ code: number | null; tookMs: number }>
}

/**
 * Starts `sluice up`, as a user does in a folder with a catalog. It sets no settings except free ports, short
 * waits, and `variables`.
 */
export async function startUp(
  folder: string,
  { program = inject('program'), variables = {} }: { program?: string; variables?: NodeJS.ProcessEnv } = {},
): Promise<Up> {
  const child = spawn(process.execPath, [program, 'up'], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      SLUICE_HTTP_HOST: '127.0.0.1',
      SLUICE_HTTP_PORT: '0',
      SLUICE_GATEWAY_HOST: '127.0.0.1',
      SLUICE_GATEWAY_PORT: '0',
      SLUICE_ADMIN_PORT: '0',
      SLUICE_INDEX_PORT: '0',
      SLUICE_TOPICS_PARTITIONS: '3',
      SLUICE_RETRY_LADDER: '1s',
      SLUICE_RETRY_THEN: '1s',
      SLUICE_STATE_FOLDER: join(folder, 'state'),
      ...variables,
    },
  })
  const exited = new Promise<number | null>((done) => child.once('exit', done))
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  createInterface({ input: child.stdout }).on('line', noteOutput)
  const broker = await until(
    'it says where Kafka is, and all that follows',
    () => {
      if (child.exitCode !== null) throw new Error(`it exited with ${child.exitCode}:\n${said}`)
      return said.includes('Ctrl-C stops it.') ? /^ {2}Kafka +(\S+) +data in/m.exec(said)?.[1] : undefined
    },
    // A busy machine takes long to start Java.
    { timeoutMs: 180_000 },
  )
  return {
    get said() {
      return said
    },
    broker,
    origin: /^ {2}gateway +(http:\S+)/m.exec(said)?.[1] ?? '',
    async interrupt() {
      const startedMs = performance.now()
      if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), 'SIGINT')
      return { code: await exited, tookMs: performance.now() - startedMs }
    },
  }
}
