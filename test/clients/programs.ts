import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { findChromium } from '../support/chromium.ts'
import { goProgram, here, installed, markOf, nodeFolder, pythonProgram } from './installed.ts'

/**
 * A program that uses a published client, or Sluice's own client. The client gets the gateway's address, and
 * no other setting is specific to Sluice.
 */
export type ClientProgram = {
  name: string
  /** Returns the command that starts the program. Throws if the program isn't installed. */
  command(): readonly [string, ...string[]]
  /** The kinds of calls that the client has. */
  kinds: readonly string[]
  /** True if the client compresses its requests. */
  gzip: boolean
  /**
   * True if the client sends the `__proto__` keys that it is given. Some clients copy objects without these
   * keys.
   */
  keepsProto: boolean
}

const allKinds = ['identify', 'track', 'page', 'screen', 'group', 'alias']

export const programs: readonly ClientProgram[] = [
  {
    name: 'analytics-node',
    command: () => nodeProgram('analytics-node.js'),
    kinds: allKinds,
    gzip: false,
    keepsProto: true,
  },
  {
    name: 'analytics-next',
    command: () => nodeProgram('browser.js'),
    kinds: allKinds,
    gzip: false,
    keepsProto: false,
  },
  {
    name: 'rudder-sdk-node',
    command: () => nodeProgram('rudder.js'),
    kinds: allKinds,
    gzip: true,
    keepsProto: false,
  },
  {
    name: 'analytics-python',
    command: () => [pythonProgram('python'), join(here, 'python', 'program.py')],
    kinds: allKinds,
    gzip: true,
    keepsProto: true,
  },
  {
    name: 'analytics-go',
    command: () => [installed(goProgram('analytics-go'))],
    kinds: allKinds,
    gzip: false,
    keepsProto: true,
  },
  {
    name: 'sluice-go',
    command: () => [installed(goProgram('sluice'))],
    kinds: allKinds,
    gzip: true,
    keepsProto: true,
  },
]

function nodeProgram(file: string): [string, string] {
  installed(markOf(nodeFolder))
  return [process.execPath, join(nodeFolder, file)]
}

export type Orders = { endpoint: string; writeKey: string } & (
  | { mode: 'once'; tracks: number; large: number }
  | { mode: 'steady'; everyMs: number }
)

/** The results of a program that has ended. */
export type Outcome = {
  /** The number of calls that the program made. */
  made: number
  /** The number of calls that the client reported as delivered. */
  succeeded: number
  failures: string[]
  /** All other output of the program and its client. */
  said: string
  tookMs: number
}

export type Running = {
  /** Tells a program in the mode `steady` to end. The program first sends the messages that it still has. */
  stop(): void
  outcome: Promise<Outcome>
}

/** Runs a program. `outcome` rejects if the program fails, or if it hasn't ended after `mostMs`. */
export function run(program: ClientProgram, orders: Orders, mostMs: number): Running {
  const [command, ...args] = program.command()
  const startedMs = performance.now()
  const child = spawn(command, args, {
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      CLIENT_ENDPOINT: orders.endpoint,
      CLIENT_WRITE_KEY: orders.writeKey,
      CLIENT_MODE: orders.mode,
      CLIENT_TRACKS: String(orders.mode === 'once' ? orders.tracks : 0),
      CLIENT_LARGE: String(orders.mode === 'once' ? orders.large : 0),
      CLIENT_EVERY_MS: String(orders.mode === 'steady' ? orders.everyMs : 0),
      CLIENT_CONTENT: join(here, 'content.json'),
      CLIENT_CHROMIUM: findChromium(),
    },
    stdio: 'pipe',
  })
  let stdout = ''
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  // The program may have ended before `stop` closes its input.
  child.stdin.on('error', () => {})
  const timer = setTimeout(() => child.kill('SIGKILL'), mostMs)
  const outcome = new Promise<Outcome>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      const lines = stdout.trimEnd().split('\n')
      const last = lines.pop() ?? ''
      if (code === 0) {
        const tookMs = performance.now() - startedMs
        resolve({ ...readOutcome(last), said: [...lines, said].join('\n').trim(), tookMs })
      } else {
        reject(new Error(`${program.name} ended with ${code ?? signal}:\n${stdout}${said}`))
      }
    })
  })
  return { stop: () => child.stdin.end(), outcome }
}

function readOutcome(line: string): Pick<Outcome, 'made' | 'succeeded' | 'failures'> {
  const read: unknown = JSON.parse(line)
  if (typeof read !== 'object' || read === null) throw new Error(`this is no outcome: ${line}`)
  const { made, succeeded, failures } = { made: 0, succeeded: 0, failures: [], ...read }
  return { made, succeeded, failures }
}
