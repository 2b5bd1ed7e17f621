import type { AdminRoute, Parameter } from './admin-route.ts'
import { labelKeyPattern, labelValuePattern } from '../catalog/labels.ts'
import { namePattern, rights } from './tokens.ts'

// Routes that make, list and revoke tokens in the topic of the catalog.

const time = { type: 'string', format: 'date-time' }
const timeOrNull = { type: ['string', 'null'], format: 'date-time' }

/** The most destinations that the scope of a token names. */
const mostNamed = 100

export const scopeSchema = {
  title: 'Scope',
  description:
    '`all`: the whole installation. Otherwise only destinations that have the label, and that are in the list, if these are given. A label also holds the sources that have it.',
  anyOf: [
    { const: 'all' },
    {
      type: 'object',
      additionalProperties: false,
      minProperties: 1,
      properties: {
        label: {
          type: 'string',
          pattern: `^${labelKeyPattern.slice(1, -1)}=${labelValuePattern.slice(1, -1)}$`,
        },
        destinations: {
          type: 'array',
          minItems: 1,
          maxItems: mostNamed,
          uniqueItems: true,
          items: { type: 'string', minLength: 1, maxLength: 100 },
        },
      },
    },
  ],
}

export const seesContent = {
  type: 'boolean',
  description: 'Whether the token sees what messages contain, and what endpoints have answered.',
}

const made = {
  name: { type: 'string' },
  right: { enum: [...rights] },
  content: seesContent,
  scope: scopeSchema,
  expiresAt: { ...timeOrNull, description: 'When the token ends. It is null if it has no end.' },
  createdBy: {
    type: ['string', 'null'],
    description:
      'The token, or the user of the command line, that made it. It is null for tokens of the file.',
  },
  createdAt: timeOrNull,
}
const listed = {
  ...made,
  hasEnded: { type: 'boolean' },
  origin: {
    enum: ['file', 'topic'],
    description: '`file`: it is in the file of `admin.tokensFile`, which is edited by hand.',
  },
  lastUsedAt: {
    ...timeOrNull,
    description:
      'When the process that answers saw the token last. It is null if this process has not seen it since `usesKnownSince`. Other processes may have.',
  },
}

const example = {
  name: 'acme-portal',
  right: 'operate',
  scope: { label: 'tenant=acme' },
  expiresAt: '2026-10-27T09:30:00.000Z',
}
const madeExample = { ...example, content: true, createdBy: 'ann', createdAt: '2026-07-29T09:30:00.000Z' }

const token: Parameter = {
  schema: { type: 'string', minLength: 1, maxLength: 100 },
  description: 'The name of a token.',
  example: 'acme-portal',
}

export const tokenRoutes: readonly AdminRoute[] = [
  {
    call: 'list_tokens',
    method: 'GET',
    path: '/v1/tokens',
    right: 'admin',
    scope: 'within',
    summary: 'List the tokens',
    description:
      'In the order of their names. The tokens themselves are stored nowhere. A token with a scope sees the tokens that may not see more than it.',
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['tokens', 'usesKnownSince'],
        properties: {
          tokens: {
            type: 'array',
            items: {
              title: 'ListedToken',
              type: 'object',
              required: Object.keys(listed),
              properties: listed,
            },
          },
          usesKnownSince: { ...time, description: 'When the process that answers was started.' },
        },
      },
      example: {
        tokens: [
          { ...madeExample, hasEnded: false, origin: 'topic', lastUsedAt: '2026-07-30T08:00:00.000Z' },
        ],
        usesKnownSince: '2026-07-29T09:00:00.000Z',
      },
    },
    problems: [],
  },
  {
    call: 'create_token',
    method: 'POST',
    path: '/v1/tokens',
    right: 'admin',
    scope: 'within',
    summary: 'Make a token',
    description:
      'The answer has the token itself, which nobody can read again. It works at once. It may not do more than the token of the request: not by its right, not by its scope, and not for longer. If the token of the request has a scope, the name begins with the name of that token and a dot, and the scope takes over what it leaves open.',
    body: {
      schema: {
        type: 'object',
        additionalProperties: false,
        required: ['name', 'right', 'scope'],
        properties: {
          name: {
            type: 'string',
            pattern: namePattern,
            description: 'Who it is for: the audit trail has it.',
          },
          right: { enum: [...rights] },
          content: {
            ...seesContent,
            description:
              'Whether the token sees what messages contain, and what endpoints have answered. Absent: it does with the rights `operate` and `admin`, if the token of the request does.',
          },
          scope: scopeSchema,
          expiresAt: {
            type: ['string', 'null'],
            minLength: 10,
            maxLength: 40,
            description:
              'When it ends, in ISO 8601. Absent: in 90 days, or with the token of the request. null: it has no end.',
          },
        },
      },
      example,
    },
    status: 201,
    answer: {
      schema: {
        type: 'object',
        required: ['token', ...Object.keys(made)],
        properties: {
          token: { type: 'string', description: 'The token, which is shown this once.' },
          ...made,
        },
      },
      example: { token: 'sluice_2yPq3v3m0l8c1cWm5kQ9Yd4i1s7bJx6rT0nUaEhGzVo', ...madeExample },
    },
    problems: ['not_found', 'conflict'],
  },
  {
    call: 'remove_token',
    method: 'DELETE',
    path: '/v1/tokens/{token}',
    right: 'admin',
    scope: 'within',
    summary: 'Revoke a token',
    description:
      'The process that answers refuses it from now on, also on open connections, and all others within a second. Tokens that were made with it stay.',
    params: { token },
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['name', 'what'],
        properties: { name: { type: 'string' }, what: { const: 'removed' } },
      },
      example: { name: 'acme-portal', what: 'removed' },
    },
    problems: ['not_found', 'conflict'],
  },
]
