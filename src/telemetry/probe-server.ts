import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { Registry } from 'prom-client'
import { http } from '../http/node-http.ts'
import { Clients } from '../http/clients.ts'
import { forAnotherHost, isForAnotherHost, isLoopbackHost } from '../http/rebound-name.ts'

/**
 * The functions that answer probes. Each function may wait for other processes, but only for a short time.
 */
export type Probes = {
  /** Returns the present metrics in Prometheus' text format, or the reasons why there are none. */
  metrics: () => Promise<{ ok: true; text: string } | { ok: false; reasons: readonly string[] }>
  /**
   * Returns, in words, which processes of the role no longer answer. Returns an empty list if all of them
   * answer.
   */
  notLive: () => Promise<readonly string[]>
  /**
   * Returns the reasons why the role can't do its work, in words. Returns an empty list if the role is ready.
   */
  notReady: () => Promise<readonly string[]>
}

/**
 * How long an idle connection is kept open, in milliseconds. It is longer than the interval of most scrapes,
 * so that a scraper keeps its connection. It is also longer than the minute after which load balancers close
 * their connections.
 */
const keepAliveMs = 72_000
/** How long a client may take to send a request, in milliseconds. */
const requestTimeoutMs = 10_000
const lookEveryMs = 1_000

/**
 * Serves `/metrics`, `/livez` (200 while all processes of the role answer) and `/readyz` (200 while the role
 * is ready). If a path can't answer 200, it answers 503 with the reasons, one in each line. `port` 0 picks a
 * free port. `stop` also closes connections that are in use.
 *
 * Writes out the log before each answer. So whatever a scrape counts can be read there, and also why a probe
 * failed, if the process is killed for it.
 *
 * Uses only `node:http`: for three routes, loading Fastify would take 60 ms of CPU in every worker.
 */
export async function serveTelemetry({
  probes,
  log,
  host,
  port,
}: {
  probes: Probes
  log: Pick<Logger, 'flush'>
  host: string
  port: number
}): Promise<{ port: number; stop(): Promise<void> }> {
  const server = http.createServer({
    keepAliveTimeout: keepAliveMs,
    requestTimeout: requestTimeoutMs,
    headersTimeout: requestTimeoutMs,
    connectionsCheckingInterval: lookEveryMs,
  })
  const clients = new Clients(server)
  server.on('request', (request, response) => {
    if (!clients.isAdmitted(request, response)) return
    const refusal = refusalOf(request, response)
    const answering = refusal ? Promise.resolve(refusal) : answerTo(probes, request.method, request.url)
    void answering.then(({ status, type, text }) => {
      log.flush()
      response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) })
      response.end(text)
    })
  })
  const isLoopback = isLoopbackHost(host)
  function refusalOf(request: IncomingMessage, response: ServerResponse): Answer | undefined {
    if (isLoopback && isForAnotherHost(request)) return plain(403, forAnotherHost)
    const isMetrics = pathOf(request.url) === '/metrics'
    return isMetrics && !clients.hasRoom(request, response) ? plain(503, unread) : undefined
  }
  server.listen({ host, port })
  await once(server, 'listening')
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    async stop() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

const unread = 'clients have not read their metrics yet: ask again in a few seconds'

function pathOf(url: string | undefined): string | undefined {
  return url?.replace(/\?.*$/, '')
}

type Answer = { status: number; type: string; text: string }

/** Never rejects. */
async function answerTo(
  probes: Probes,
  method: string | undefined,
  url: string | undefined,
): Promise<Answer> {
  // The answer to HEAD needs no special case, because Node leaves out its body.
  if (method !== 'GET' && method !== 'HEAD') return plain(405, `${method} is no way to ask`)
  try {
    switch (pathOf(url)) {
      case '/metrics':
        return await metricsOf(probes)
      case '/livez':
        return stateOf('live', await probes.notLive())
      case '/readyz':
        return stateOf('ready', await probes.notReady())
      default:
        return plain(404, 'there are /metrics, /livez and /readyz')
    }
  } catch (error) {
    return plain(500, error instanceof Error ? error.message : String(error))
  }
}

async function metricsOf(probes: Probes): Promise<Answer> {
  const scraped = await probes.metrics()
  if (!scraped.ok) return plain(503, ...scraped.reasons)
  return { status: 200, type: Registry.PROMETHEUS_CONTENT_TYPE, text: scraped.text }
}

function stateOf(name: string, reasons: readonly string[]): Answer {
  return reasons.length === 0 ? plain(200, name) : plain(503, ...reasons)
}

function plain(status: number, ...lines: readonly string[]): Answer {
  return { status, type: 'text/plain', text: lines.map((line) => `${line}\n`).join('') }
}
