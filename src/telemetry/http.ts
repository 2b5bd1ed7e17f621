import { fastify, type FastifyReply } from 'fastify'
import { Registry } from 'prom-client'

/** The functions that answer probes. Each may wait for other processes, but not for long. */
export type Probes = {
  /** Returns the present metrics in Prometheus' text format, or why they can't be had. */
  metrics: () => Promise<{ ok: true; text: string } | { ok: false; reasons: readonly string[] }>
  /** Returns which parts of the process no longer answer, in words; empty when all do. */
  notLive: () => Promise<readonly string[]>
  /** Returns why the process can't do its work, in words; empty when it is ready. */
  notReady: () => Promise<readonly string[]>
}

/**
 * Serves `/metrics`, `/livez` (200 while the event loop answers) and `/readyz` (200 while ready). Otherwise
 * each answers 503 with the reasons, one per line. `port` 0 picks a free one.
 */
export async function serveTelemetry({
  probes,
  host,
  port,
}: {
  probes: Probes
  host: string
  port: number
}): Promise<{ port: number; stop(): Promise<void> }> {
  const server = fastify({ logger: false, forceCloseConnections: true })
  server.get('/metrics', async (_request, reply) => {
    const scraped = await probes.metrics()
    if (!scraped.ok) return refuse(reply, scraped.reasons)
    return reply.type(Registry.PROMETHEUS_CONTENT_TYPE).send(scraped.text)
  })
  server.get('/livez', async (_request, reply) => {
    const reasons = await probes.notLive()
    return reasons.length === 0 ? reply.type('text/plain').send('live\n') : refuse(reply, reasons)
  })
  server.get('/readyz', async (_request, reply) => {
    const reasons = await probes.notReady()
    return reasons.length === 0 ? reply.type('text/plain').send('ready\n') : refuse(reply, reasons)
  })
  await server.listen({ host, port })
  const address = server.server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    stop: () => server.close(),
  }
}

function refuse(reply: FastifyReply, reasons: readonly string[]): FastifyReply {
  return reply
    .code(503)
    .type('text/plain')
    .send(`${reasons.join('\n')}\n`)
}
