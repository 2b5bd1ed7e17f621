import { type Static, Type } from 'typebox'
import type { FeatureBreach, HookCheck, Unchecked } from './feature-check.ts'

// How the requests of a hook log in, other than by headers that the catalog gives.

const variable = '${CATALOG_X} stands for the value of a variable.'

export const loginSchema = Type.Object(
  {
    kind: Type.Enum(['basic', 'oauth2'], {
      description:
        'basic: each request has the user name and the password (RFC 7617). oauth2: Sluice gets a token by client credentials (RFC 6749), which each request has as a Bearer token, until it ends or is refused.',
    }),
    username: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description: `The user name of basic, without a colon. An API key is often the user name of a login without a password. ${variable}`,
        examples: ['sluice'],
      }),
    ),
    password: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1024,
        description: `The password of basic. Absent: it is empty. ${variable}`,
        examples: ['${CATALOG_CRM_PASSWORD}'],
      }),
    ),
    tokenUrl: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 2048,
        description:
          'The URL of the token endpoint of oauth2. The rules for URLs of hooks apply, also those for addresses. It is shown, so it must have no secret in it.',
        examples: ['https://login.example.com/oauth2/token'],
      }),
    ),
    clientId: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 500,
        description: 'The id of the client of oauth2.',
        examples: ['sluice'],
      }),
    ),
    clientSecret: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 2048,
        description: `The secret of the client of oauth2. ${variable}`,
        examples: ['${CATALOG_CRM_CLIENT_SECRET}'],
      }),
    ),
    scope: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1000,
        description: 'What the token is asked for, as the token endpoint names it. Absent: its default.',
        examples: ['events.write'],
      }),
    ),
    audience: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1000,
        description: 'For whom the token is, if the token endpoint asks for it.',
        examples: ['https://crm.example.com'],
      }),
    ),
    clientAuth: Type.Optional(
      Type.Enum(['basic', 'post'], {
        default: 'basic',
        description:
          'How the client of oauth2 names itself to the token endpoint. basic: in the header Authorization. post: in the form.',
      }),
    ),
  },
  {
    additionalProperties: false,
    description:
      'The login of each request, which becomes its header Authorization. Absent: requests have only the headers of the hook.',
    examples: [{ kind: 'basic', username: 'sluice', password: '${CATALOG_CRM_PASSWORD}' }],
  },
)

/** Basic authentication. Neither text may be logged: an API key is often the user name. */
export type BasicLogin = { readonly kind: 'basic'; readonly username: string; readonly password: string }

/** Client credentials of OAuth 2. The secret must never be logged. */
export type OAuthLogin = {
  readonly kind: 'oauth2'
  /** The scheme, host and port of the token endpoint, and its path with its query. */
  readonly tokenOrigin: string
  readonly tokenPath: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scope?: string
  readonly audience?: string
  readonly clientAuth: 'basic' | 'post'
}

export type HookLogin = BasicLogin | OAuthLogin

/** The fields of a login in which variables are filled in, and which the topic of the catalog has sealed. */
export const secretLoginFields = ['username', 'password', 'clientSecret'] as const

/** The fields of a kind: those that it needs, and those that it may have. */
const fields = {
  basic: { needed: ['username'], free: ['password'] },
  oauth2: { needed: ['tokenUrl', 'clientId', 'clientSecret'], free: ['scope', 'audience', 'clientAuth'] },
} as const

/** Checks the login of a hook. `hasAuthorization`: its headers log in already. */
export function checkLogin(login: Unchecked, hasAuthorization: boolean, check: HookCheck): void {
  if (hasAuthorization)
    check.add(['login'], {
      problem: 'is set beside the header Authorization, and a request has only one login',
      advice: 'keep one of them',
    })
  check.text(at('username'), login['username'], usernameBreach)
  for (const key of ['password', 'clientId', 'clientSecret', 'scope', 'audience'])
    check.text(at(key), login[key], controlBreach)
  check.url(at('tokenUrl'), login['tokenUrl'])
  const { kind } = login
  if (kind !== 'basic' && kind !== 'oauth2') return
  for (const key of fields[kind].needed)
    if (login[key] === undefined)
      check.add(at(key), {
        problem: `is missing, which a login of the kind ${kind} needs`,
        advice: `add ${key}`,
      })
  const others = fields[kind === 'basic' ? 'oauth2' : 'basic']
  for (const key of [...others.needed, ...others.free])
    if (login[key] !== undefined)
      check.add(at(key), {
        problem: `is not a field of a login of the kind ${kind}`,
        advice: 'remove it, or write the other kind',
      })
}

function at(key: string): readonly string[] {
  return ['login', key]
}

type Reading = {
  /** Fills in the variables of a text. */
  readonly filled: (text: string) => string
  readonly placeOf: (url: string) => { readonly origin: string; readonly path: string }
}

/** Builds a login that has no fault. */
export function buildLogin(login: Static<typeof loginSchema>, { filled, placeOf }: Reading): HookLogin {
  if (login.kind === 'basic') {
    const { username = '', password = '' } = login
    return { kind: 'basic', username: filled(username), password: filled(password) }
  }
  const { tokenUrl = '', clientId = '', clientSecret = '', scope, audience, clientAuth = 'basic' } = login
  const { origin: tokenOrigin, path: tokenPath } = placeOf(tokenUrl)
  return {
    kind: 'oauth2',
    tokenOrigin,
    tokenPath,
    clientId,
    clientSecret: filled(clientSecret),
    ...(scope !== undefined && { scope }),
    ...(audience !== undefined && { audience }),
    clientAuth,
  }
}

/** Returns the value of the header `Authorization` for Basic authentication. */
export function basicAuthorization({ username, password }: BasicLogin): string {
  return `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`
}

/** RFC 7617, section 2: the first colon ends the user name. */
function usernameBreach(text: string): FeatureBreach | undefined {
  if (text.includes(':'))
    return { problem: 'has a colon, which ends a user name', advice: 'write what is after it as password' }
  return controlBreach(text)
}

function controlBreach(text: string): FeatureBreach | undefined {
  if (/\p{Cc}/u.test(text)) return { problem: 'has a control character or line break', advice: 'remove it' }
  if (!text.isWellFormed()) return { problem: 'is not well-formed Unicode', advice: 'write it anew' }
  return undefined
}
