import { fastify } from 'fastify'

/**
 * `node bare.ts`: the least that a JSON API in Fastify can do. It parses the bodies that the gateway gets, drops them, and
 * answers the same. Its port is on its standard output.
 */
const server = fastify({ logger: false, bodyLimit: 512_000 })
for (const path of ['/v1/batch', '/v1/track'])
  server.post(path, (_request, reply) => reply.send({ success: true }))
await server.listen({ host: '127.0.0.1', port: 0 })
const address = server.server.address()
console.log(`port ${typeof address === 'object' ? address?.port : ''}`)
process.once('SIGTERM', () => void server.close())
