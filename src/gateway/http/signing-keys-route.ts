import type { FastifyInstance } from 'fastify'
import { keySetOf } from '../../catalog/features/signing-keys.ts'
import { type Answer, problem } from '../calls/answer.ts'
import { browserRoutes } from './api-routes.ts'
import type { GatewayParts } from './gateway-parts.ts'

/**
 * Receivers may use public keys for this time after a change, so a new key is there before the old one ends.
 */
const keysCaching = 'public, max-age=300'

const unknownKeys = problem('not_found', 'No destination with this id has public keys.')

/**
 * Serves the public keys with which receivers verify the requests of a destination. Anybody may ask: a public
 * key is no secret.
 */
export function serveSigningKeys(
  server: FastifyInstance,
  { signingKeysOf, observer, replies }: GatewayParts,
): void {
  server.get<{ Params: { destination: string } }>(
    browserRoutes.signingKeys.path.replace(/\{(\w+)\}/, ':$1'),
    { exposeHeadRoute: false },
    (request, reply) => {
      const keys = signingKeysOf?.(request.params.destination) ?? []
      const answer: Answer =
        keys.length === 0 ? unknownKeys : { status: 200, body: JSON.stringify(keySetOf(keys)) }
      observer.answered('signing_keys', answer.status, 0, answer.code)
      if (answer.status === 200) reply.header('cache-control', keysCaching)
      return replies.send(reply, answer)
    },
  )
}
