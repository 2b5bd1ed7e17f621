import type { AdminRoute } from './admin-route.ts'
import { limited } from './limited.ts'
import { grants, rights } from './tokens.ts'
import { scopeSchema } from './token-routes.ts'

// Routes by which a browser signs in and out, and by which somebody ends the sessions of others. Programs
// send their token with each request instead.

const time = { type: 'string', format: 'date-time' }
const secret = { type: 'string', minLength: 1, maxLength: 200 }
const noBody = { schema: {}, example: {} }

const shown = {
  name: { type: 'string', description: 'The name of the token that has signed in.' },
  rights: {
    type: 'array',
    items: { enum: [...rights, ...grants] },
    description: 'The rights of the token, or those of the link.',
  },
  content: {
    type: 'boolean',
    description:
      'Whether it sees what messages contain, and what endpoints have answered. With the right `answers`, a link sees the answers without it.',
  },
  scope: scopeSchema,
  ends: {
    type: ['string', 'null'],
    format: 'date-time',
    description:
      'When it ends at the latest. A session also ends when it is not used for `admin.sessionIdleTimeout`. It is null for a token without an end.',
  },
  label: { type: ['string', 'null'], description: 'The label of the scope.' },
  catalog: {
    enum: ['file', 'topic'],
    description: 'Where the catalog is. One in a file is edited there, and not by this API.',
  },
  isLink: { type: 'boolean', description: 'Whether a link has begun the session.' },
  theme: {
    type: ['object', 'null'],
    required: ['name', 'accent', 'scheme', 'logo'],
    properties: {
      name: { type: ['string', 'null'] },
      accent: { type: ['string', 'null'], description: 'A colour, such as `#0a7d55`.' },
      scheme: {
        enum: ['system', 'light', 'dark'],
        description: 'Whether it is light or dark, for who has chosen nothing.',
      },
      logo: { type: ['string', 'null'], description: 'The path of the logo, below that of the console.' },
    },
    description: 'How the console looks, by the settings `admin.console…`.',
  },
  isSession: { type: 'boolean', description: 'Whether a cookie has shown this, and no token.' },
}

const rightsOf = { ...shown.rights, description: 'The rights of its token, or those of its link.' }
const held = {
  id: { type: 'string' },
  kind: {
    enum: ['person', 'token', 'link'],
    description: 'Who has signed in: a person at the OpenID provider, or the holder of a token or of a link.',
  },
  holder: {
    type: 'string',
    description:
      'The id of this person, token or link. `DELETE /v1/sessions/of/{holder}` ends all of its sessions.',
  },
  name: { type: 'string', description: 'The name, as the audit trail has it.' },
  rights: rightsOf,
  content: shown.content,
  scope: scopeSchema,
  since: { ...time, description: 'When somebody has signed in.' },
  lastUsedAt: {
    ...time,
    description:
      'It was used at this time, or later by up to a quarter of `admin.sessionIdleTimeout`, because not each use is written down.',
  },
  endsAt: { ...time, description: 'When it ends at the latest.' },
  isOwn: { type: 'boolean', description: 'Whether it is the session of the request.' },
}
const exampleHeld = {
  id: 'session.5f0c2a9be14d7c3368a1b2f4',
  kind: 'person',
  holder: 'person.9be14d7c3368a1b2f45f0c2a',
  name: 'oidc:ann@example.com',
  rights: ['read', 'operate'],
  content: true,
  scope: 'all',
  since: '2026-07-29T09:30:00.000Z',
  lastUsedAt: '2026-07-29T11:02:10.000Z',
  endsAt: '2026-07-29T21:30:00.000Z',
  isOwn: false,
}
const ended = {
  schema: {
    title: 'SessionsEnded',
    type: 'object',
    required: ['ended'],
    properties: { ended: { type: 'integer', minimum: 1, description: 'How many sessions have ended.' } },
  },
  example: { ended: 2 },
}
const ending = {
  method: 'DELETE',
  right: 'admin',
  scope: 'within',
  status: 200,
  problems: ['not_found'],
} as const
const endsEverywhere = 'On this process at once, and on all others within a second. Live views end with it.'

/** Routes about the sessions of others. A token with a scope sees those that may not see more than itself. */
const routesOfOthers: readonly AdminRoute[] = [
  {
    call: 'list_sessions',
    method: 'GET',
    path: '/v1/sessions',
    right: 'admin',
    scope: 'within',
    summary: 'List who is signed in',
    description:
      'The sessions that are in force, by name, the oldest of a name first. Nothing has their secrets. A token with a scope sees the sessions that may not see more than it. For the next part of the list, send the `cursor` of the answer.',
    query: {
      ...limited,
      cursor: {
        schema: { type: 'string', minLength: 1, maxLength: 400 },
        description: 'The `cursor` of an answer.',
        example: 'WyJhbm4iLDE3ODUzMTc0MDMwMDAsInNlc3Npb24uNWYiXQ',
      },
    },
    status: 200,
    answer: {
      schema: {
        type: 'object',
        required: ['sessions', 'total', 'cursor'],
        properties: {
          sessions: {
            type: 'array',
            items: {
              title: 'HeldSession',
              type: 'object',
              required: Object.keys(held),
              properties: held,
            },
          },
          total: {
            type: 'integer',
            minimum: 0,
            description: 'How many there are, in all parts of the list.',
          },
          cursor: {
            type: ['string', 'null'],
            description: 'The beginning of the next part. It is null after the last one.',
          },
        },
      },
      example: { sessions: [exampleHeld], total: 1, cursor: null },
    },
    problems: [],
  },
  {
    ...ending,
    call: 'remove_session',
    path: '/v1/sessions/{session}',
    summary: 'End a session',
    description: `${endsEverywhere} The audit trail says who has ended it.`,
    params: {
      session: {
        schema: { type: 'string', minLength: 1, maxLength: 100 },
        description: 'The id of a session.',
        example: exampleHeld.id,
      },
    },
    answer: { ...ended, example: { ended: 1 } },
  },
  {
    ...ending,
    call: 'remove_sessions',
    path: '/v1/sessions/of/{holder}',
    summary: 'End all sessions of a person, a token or a link',
    description: `${endsEverywhere} Codes that would begin another session are used up too. It keeps nobody from signing in again: revoke the token or the link for this, or take the right away from the person at the provider.`,
    params: {
      holder: {
        schema: { type: 'string', minLength: 1, maxLength: 110 },
        description: 'The `holder` of a session.',
        example: exampleHeld.holder,
      },
    },
    answer: ended,
  },
]

export const sessionRoutes: readonly AdminRoute[] = [
  ...routesOfOthers,
  {
    call: 'sign_in',
    method: 'POST',
    path: '/v1/session',
    right: 'read',
    scope: 'token',
    isOpen: true,
    summary: 'Sign in',
    description:
      'Sets the cookie of a new session, with the rights and the scope of the token. The session ends with the token. Whoever sends many wrong tokens has to wait.',
    body: {
      schema: {
        type: 'object',
        additionalProperties: false,
        minProperties: 1,
        maxProperties: 1,
        properties: {
          token: { ...secret, description: 'A token of the admin API.' },
          link: { ...secret, description: 'What a link of `POST /v1/links` has after `#link=`.' },
          code: { ...secret, description: 'A code of `POST /v1/session/codes`, which works once.' },
        },
      },
      example: { token: 'sluice_2yPq3v3m0l8c1cWm5kQ9Yd4i1s7bJx6rT0nUaEhGzVo' },
    },
    status: 204,
    answer: noBody,
    problems: ['conflict'],
  },
  {
    call: 'show_session',
    method: 'GET',
    path: '/v1/session',
    right: 'read',
    scope: 'token',
    summary: 'Who is signed in',
    description: 'Also answers to a token.',
    status: 200,
    answer: {
      schema: { type: 'object', required: Object.keys(shown), properties: shown },
      example: {
        name: 'ann',
        rights: ['read', 'operate'],
        content: true,
        scope: 'all',
        ends: '2026-07-30T09:30:00.000Z',
        label: null,
        catalog: 'topic',
        isLink: false,
        theme: { name: 'Acme webhooks', accent: '#0a7d55', scheme: 'system', logo: 'theme/logo.svg' },
        isSession: true,
      },
    },
    problems: [],
  },
  {
    call: 'sign_out',
    method: 'DELETE',
    path: '/v1/session',
    right: 'read',
    scope: 'token',
    summary: 'Sign out',
    description: 'Ends the session, on this process at once and on all others within a second.',
    status: 204,
    answer: noBody,
    problems: ['conflict'],
  },
  {
    call: 'create_code',
    method: 'POST',
    path: '/v1/session/codes',
    right: 'read',
    scope: 'token',
    summary: 'Make a code that signs in',
    description:
      'The code signs in once, as the token of the request, within a minute: open `console/#code=CODE`. `sluice console` makes such a link. A session can make none.',
    status: 201,
    answer: {
      schema: {
        type: 'object',
        required: ['code', 'expiresAt', 'path'],
        properties: {
          code: { type: 'string' },
          expiresAt: time,
          path: {
            type: 'string',
            description: 'The address of the console with the code: a URL if `admin.publicUrl` is set.',
          },
        },
      },
      example: {
        code: 'sluice_code_2yPq3v3m0l8c1cWm5kQ9Yd4i1s7bJx6rT0nUaEhGzVo',
        expiresAt: '2026-07-29T09:31:00.000Z',
        path: '/console/#code=sluice_code_2yPq3v3m0l8c1cWm5kQ9Yd4i1s7bJx6rT0nUaEhGzVo',
      },
    },
    problems: ['conflict'],
  },
]
