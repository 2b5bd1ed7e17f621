import type { AdminRoute } from './admin-route.ts'
import { dryRun, ofDestination } from './catalog-routes.ts'
import { idempotent } from './idempotency.ts'

// Routes that replace the shared secret or the signing key of a destination whose catalog is in its topic.

const ed25519 = {
  ...dryRun,
  description: '`true`: for the keys of Ed25519 (signing.ed25519) instead of the shared secret.',
}

const answer = {
  schema: {
    type: 'object',
    required: ['destination', 'state', 'secret', 'publicKey', 'version', 'revision'],
    properties: {
      destination: { type: 'string' },
      state: {
        type: 'string',
        enum: ['first', 'both', 'ended'],
        description:
          'first: there was no secret. both: the old secret stays valid beside the new one. ended: only the new one is used.',
      },
      secret: {
        anyOf: [{ type: 'string' }, { type: 'null' }],
        description: 'The new secret. null: none was made.',
      },
      publicKey: {
        anyOf: [{ type: 'string' }, { type: 'null' }],
        description: 'The public key of the new key of Ed25519. null: none was made.',
      },
      version: {
        type: 'integer',
        description: 'The version of the destination. It is also in the header `ETag`.',
      },
      revision: { type: 'integer', description: 'The number of the last change of the catalog.' },
    },
  },
  example: {
    destination: 'crm',
    state: 'both',
    secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD3bsZXHNp2rE=',
    publicKey: null,
    version: 4_713,
    revision: 99,
  },
} as const

const change = {
  method: 'POST',
  right: 'admin',
  scope: 'destination',
  params: { destination: ofDestination },
  query: { dryRun, ed25519 },
  headers: idempotent,
  status: 200,
  problems: ['not_found', 'conflict', 'outdated', 'other_request', 'faulty'],
} as const

export const rotateRoutes: readonly AdminRoute[] = [
  {
    ...change,
    call: 'rotate_secret',
    path: '/v1/destinations/{destination}/rotate',
    summary: 'Make a new secret of a destination, beside the old one',
    description:
      'The answer has the new secret, and no later answer has it, unless you repeat the request with its Idempotency-Key. With Standard Webhooks, requests are signed with both secrets until the old one ends. `X-Signature` is made with the old one until then. Without Standard Webhooks, say when the old one ends. See docs/verifying-signatures.md. If there is a next secret already, the answer is 409. With `ed25519`, a new key of Ed25519 is made, which no answer has. Requests are signed with both keys until the old one ends.',
    body: {
      schema: {
        type: 'object',
        additionalProperties: false,
        properties: {
          oldSecretEndsAt: {
            type: 'string',
            minLength: 10,
            maxLength: 40,
            description: 'When the old secret ends by itself (ISO 8601). Absent: when somebody ends it.',
          },
        },
      },
      example: {},
    },
    answer,
  },
  {
    ...change,
    call: 'end_secret',
    path: '/v1/destinations/{destination}/rotate/end',
    summary: 'End the old secret of a destination',
    description: 'From now on, requests are signed with the new secret only.',
    answer: { ...answer, example: { ...answer.example, state: 'ended', secret: null } },
  },
]
