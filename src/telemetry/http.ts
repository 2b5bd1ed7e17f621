import { fastify } from 'fastify'
import type { Registry } from 'prom-client'

export type Probes = {
  /** What keeps the process from doing its work, in words; nothing when it is ready. */
  notReady: () => readonly string[]
  /** Brings the gauges up to date, before they are read. */
  collect: () => void
}

/**
 * Serves `/metrics`, `/livez` (the event loop answers) and `/readyz` (200 when ready, else 503 with the
 * reasons, a line each). `port` 0 picks a free one.
 */
export async function serveTelemetry({
  registry,
  probes,
  host,
  port,
}: {
  registry: Registry
  probes: Probes
  host: string
  port: number
}): Promise<{ port: number; stop(): Promise<void> }> {
  const server = fastify({ logger: false, forceCloseConnections: true })
  server.get('/metrics', async (_request, reply) => {
    probes.collect()
    return reply.type(registry.contentType).send(await registry.metrics())
  })
  server.get('/livez', (_request, reply) => reply.type('text/plain').send('live\n'))
  server.get('/readyz', (_request, reply) => {
    const reasons = probes.notReady()
    const text = reasons.length === 0 ? 'ready\n' : `${reasons.join('\n')}\n`
    return reply
      .code(reasons.length === 0 ? 200 : 503)
      .type('text/plain')
      .send(text)
  })
  await server.listen({ host, port })
  const address = server.server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    stop: () => server.close(),
  }
}
