import type { AdminRoute } from './admin-route.ts'
import { grants, rights } from './tokens.ts'
import { scopeSchema } from './token-routes.ts'

// Routes by which a browser signs in and out. Programs send their token with each request instead.

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
    description: 'Whether it sees what messages contain, and what endpoints have answered.',
  },
  scope: scopeSchema,
  ends: {
    type: ['string', 'null'],
    format: 'date-time',
    description:
      'When it ends at the latest. A session also ends when it is not used for `admin.sessionIdleTimeout`. It is null for a token without an end.',
  },
  label: { type: ['string', 'null'], description: 'The label of the scope.' },
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

export const sessionRoutes: readonly AdminRoute[] = [
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
