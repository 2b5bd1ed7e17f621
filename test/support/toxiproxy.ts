import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from '../../src/development/free-ports.ts'
import { lastLines, startTethered } from '../../src/development/tether.ts'
import { goProgram } from './go-program.ts'
import { until } from './until.ts'

/**
 * Toxiproxy, a server of TCP proxies. A test can make the connections of a proxy slow, cut them, or refuse
 * them.
 */
export type Toxiproxy = {
  /**
   * Creates a proxy on a free port of 127.0.0.1. It forwards to `upstream`, which is another port of
   * 127.0.0.1.
   */
  proxy(name: string, upstream: number): Promise<Proxy>
  stop(): Promise<void>
}

export type Proxy = {
  readonly port: number
  /** Puts a fault on all connections, including those that are open. */
  add(toxic: Toxic): Promise<void>
  /** Closes the proxy's port and its connections. */
  disable(): Promise<void>
  /** Removes all faults, and opens the port again. */
  heal(): Promise<void>
}

/**
 * A fault. Sizes are in bytes, and times in milliseconds. `downstream` is the direction from the server to
 * the client.
 */
export type Toxic = { stream: 'upstream' | 'downstream' } & (
  | { type: 'latency'; attributes: { latency: number; jitter?: number } }
  | { type: 'bandwidth'; attributes: { /** KB/s */ rate: number } }
  /** Sends a RST `timeout` milliseconds after the first byte. */
  | { type: 'reset_peer'; attributes: { timeout: number } }
  /**
   * Lets nothing pass, and closes the connection after `timeout` milliseconds. With 0, the connection stays
   * open.
   */
  | { type: 'timeout'; attributes: { timeout: number } }
  | { type: 'limit_data'; attributes: { bytes: number } }
)

const toxiproxy = {
  name: 'toxiproxy',
  package: 'github.com/Shopify/toxiproxy/v2/cmd/server',
  version: 'v2.12.0',
}

/**
 * Starts a toxiproxy. Builds it the first time. The toxiproxy ends at `stop`. It also ends when this process
 * ends in any way.
 */
export async function startToxiproxy(): Promise<Toxiproxy> {
  const program = await goProgram(toxiproxy)
  const folder = await mkdtemp(join(tmpdir(), 'sluice-toxiproxy-'))
  const logFile = join(folder, 'toxiproxy.log')
  const [port = 0] = await freePorts(1)
  const server = await startTethered(program, ['-host', '127.0.0.1', '-port', String(port)], {
    logFile,
    scratch: folder,
  })
  const url = `http://127.0.0.1:${port}`
  const stop = async (): Promise<void> => {
    server.kill('SIGKILL')
    await server.exited
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await until('toxiproxy answers', async () => (await fetch(`${url}/version`)).ok)
  } catch (cause) {
    const log = await lastLines(logFile)
    await stop()
    throw new Error(`toxiproxy did not start:\n${log}`, { cause })
  }
  return { proxy: (name, upstream) => createProxy(url, name, upstream), stop }
}

async function createProxy(api: string, name: string, upstream: number): Promise<Proxy> {
  const made = await ask(`${api}/proxies`, 'POST', {
    name,
    listen: '127.0.0.1:0',
    upstream: `127.0.0.1:${upstream}`,
    enabled: true,
  })
  const listen = String(made['listen'])
  const url = `${api}/proxies/${name}`
  let toxics = 0
  return {
    port: Number(listen.slice(listen.lastIndexOf(':') + 1)),
    async add(toxic) {
      await ask(`${url}/toxics`, 'POST', { name: `toxic-${++toxics}`, toxicity: 1, ...toxic })
    },
    async disable() {
      await ask(url, 'POST', { listen, enabled: false })
    },
    async heal() {
      const { toxics: present } = await ask(url, 'GET')
      for (const toxic of namesOf(present)) await ask(`${url}/toxics/${toxic}`, 'DELETE')
      await ask(url, 'POST', { listen, enabled: true })
    },
  }
}

function namesOf(toxics: unknown): string[] {
  const list: unknown[] = Array.isArray(toxics) ? toxics : []
  return list.flatMap((toxic) =>
    typeof toxic === 'object' && toxic !== null && 'name' in toxic ? [String(toxic.name)] : [],
  )
}

async function ask(url: string, method: string, body?: object): Promise<Record<string, unknown>> {
  const response = await fetch(url, body === undefined ? { method } : { method, body: JSON.stringify(body) })
  const text = await response.text()
  if (!response.ok) throw new Error(`toxiproxy: ${method} ${url}: ${response.status} ${text}`)
  const answer: unknown = text === '' ? {} : JSON.parse(text)
  return typeof answer === 'object' && answer !== null ? { ...answer } : {}
}
