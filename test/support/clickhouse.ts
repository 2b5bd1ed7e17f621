import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { ClickHouseAccess } from '../../src/delivery-log/clickhouse/connect-clickhouse.ts'
import { chdbFolder, installed } from '../clients/installed.ts'

/**
 * A ClickHouse server for tests. If `CLICKHOUSE_URL` is set, this is the server at that URL, with the login
 * in `CLICKHOUSE_USER` and `CLICKHOUSE_PASSWORD`. Otherwise it is ClickHouse's engine in a child process.
 */
export type TestClickHouse = {
  readonly url: string
  readonly user: string
  readonly password: string
  /**
   * Returns how much CPU time and memory the child process has used. Returns `undefined` for a server at
   * `CLICKHOUSE_URL`.
   */
  usage(): Promise<{ cpuS: number; rssMb: number } | undefined>
  stop(): Promise<void>
}

export async function startClickHouse(): Promise<TestClickHouse> {
  const { CLICKHOUSE_URL: url, CLICKHOUSE_USER: user, CLICKHOUSE_PASSWORD: password } = process.env
  if (url !== undefined) return elsewhere(url, user ?? 'default', password ?? '')
  installed(join(chdbFolder, 'node_modules', 'chdb'))
  const folder = mkdtempSync(join(tmpdir(), 'sluice-clickhouse-'))
  const server = await startServer(folder)
  const { port } = server
  return {
    url: `http://127.0.0.1:${port}`,
    user: 'sluice',
    password: 'a password',
    async usage() {
      const response = await fetch(`http://127.0.0.1:${port}/usage`)
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the format of chdb/server.js
      return (await response.json()) as { cpuS: number; rssMb: number }
    },
    async stop() {
      await server.kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export function accessOf({ url, user, password }: TestClickHouse): ClickHouseAccess {
  return { url, user, password: () => password, ca: undefined, timeoutMs: 60_000 }
}

function elsewhere(url: string, user: string, password: string): TestClickHouse {
  return {
    url,
    user,
    password,
    usage: async () => undefined,
    stop: async () => undefined,
  }
}

async function startServer(folder: string): Promise<{ port: number; kill(): Promise<void> }> {
  const child = spawn(process.execPath, [join(chdbFolder, 'server.js'), folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const killed = (): boolean => child.kill('SIGKILL')
  process.once('exit', killed)
  const ended = once(child, 'exit')
  const [line] = await Promise.race([
    once(createInterface(child.stdout), 'line'),
    ended.then(() => Promise.reject(new Error("ClickHouse's engine ended at its start"))),
  ])
  return {
    port: Number(line),
    async kill() {
      process.off('exit', killed)
      killed()
      await ended
    },
  }
}
