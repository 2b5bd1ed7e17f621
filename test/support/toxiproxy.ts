import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from '../../src/development/free-ports.ts'
import { lastLines, startTethered } from '../../src/development/tether.ts'
import { goProgram } from './go-program.ts'
import { until } from './until.ts'

/** Toxiproxy: TCP proxies whose connections can be made slow, cut, or refused. */
export type Toxiproxy = {
  /** A proxy on a free port of 127.0.0.1, in front of `upstream`, a port of 127.0.0.1 too. */
  proxy(name: string, upstream: number): Promise<Proxy>
  stop(): Promise<void>
}

export type Proxy = {
  readonly port: number
  /** Puts a fault on all connections, those that are open too. */
  add(toxic: Toxic): Promise<void>
  /** Closes its port and its connections. */
  disable(): Promise<void>
  /** Takes all faults away, and opens the port again. */
  heal(): Promise<void>
}

/** Sizes in bytes, times in milliseconds. `downstream` is from the server to the client. */
export type Toxic = { stream: 'upstream' | 'downstream' } & (
  | { type: 'latency'; attributes: { latency: number; jitter?: number } }
  | { type: 'bandwidth'; attributes: { /** KB/s */ rate: number } }
  /** RST so long after the first byte. */
  | { type: 'reset_peer'; attributes: { timeout: number } }
  /** Nothing passes, and the connection is closed after a time; 0: it stays open. */
  | { type: 'timeout'; attributes: { timeout: number } }
  | { type: 'limit_data'; attributes: { bytes: number } }
)

const toxiproxy = {
  name: 'toxiproxy',
  package: 'github.com/Shopify/toxiproxy/v2/cmd/server',
  version: 'v2.12.0',
}

/** Starts a toxiproxy, built the first time. It ends at `stop`, and with this process however that ends. */
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
