import { fastify, type FastifyReply } from 'fastify'
import { Registry } from 'prom-client'

/** Each may wait for other processes, but not for long: what asks is a probe. */
export type Probes = {
  /** In Prometheus' text format, up to date; or in words why they can't be had. */
  metrics: () => Promise<{ ok: true; text: string } | { ok: false; reasons: readonly string[] }>
  /** What of the process no longer answers, in words; nothing when all of it does. */
  notLive: () => Promise<readonly string[]>
  /** What keeps the process from doing its work, in words; nothing when it is ready. */
  notReady: () => Promise<readonly string[]>
}

/**
 * Serves `/metrics`, `/livez` (the event loop answers) and `/readyz` (200 when ready). Each is 503 with the
 * reasons, a line each, when it is not so. `port` 0 picks a free one.
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
