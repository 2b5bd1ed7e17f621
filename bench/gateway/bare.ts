import { fastify } from 'fastify'

/**
 * `node bare.ts` starts a minimal JSON API in Fastify. The API parses the bodies that the gateway gets,
 * drops them, and gives the same answer as the gateway. This process writes its port to standard output.
 */
const server = fastify({ logger: false, bodyLimit: 512_000 })
for (const path of ['/v1/batch', '/v1/track'])
  server.post(path, (_request, reply) => reply.send({ success: true }))
await server.listen({ host: '127.0.0.1', port: 0 })
const address = server.server.address()
console.log(`port ${typeof address === 'object' ? address?.port : ''}`)
process.once('SIGTERM', () => void server.close())
