import { type Static, Type } from 'typebox'
import type { FeatureBreach, HookCheck, Unchecked } from './feature-check.ts'

// How the requests of a hook log in, other than by headers that the catalog gives.

export const loginSchema = Type.Object(
  {
    kind: Type.Enum(['basic'], {
      description: 'basic: each request has the user name and the password (RFC 7617).',
    }),
    username: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description:
          'The user name of basic, without a colon. An API key is often the user name of a login without a password. ${CATALOG_X} stands for the value of a variable.',
        examples: ['sluice'],
      }),
    ),
    password: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1024,
        description:
          'The password of basic. Absent: it is empty. ${CATALOG_X} stands for the value of a variable.',
        examples: ['${CATALOG_CRM_PASSWORD}'],
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
export type HookLogin = BasicLogin

/** The fields of a login in which variables are filled in, and which the topic of the catalog has sealed. */
export const secretLoginFields = ['username', 'password'] as const

/** Checks the login of a hook. `hasAuthorization`: its headers log in already. */
export function checkLogin(login: Unchecked, hasAuthorization: boolean, check: HookCheck): void {
  const at = (key: string): readonly string[] => ['login', key]
  if (hasAuthorization)
    check.add(['login'], {
      problem: 'is set beside the header Authorization, and a request has only one login',
      advice: 'keep one of them',
    })
  check.text(at('username'), login['username'], usernameBreach)
  check.text(at('password'), login['password'], controlBreach)
  if (login['kind'] === 'basic' && login['username'] === undefined)
    check.add(at('username'), { problem: 'is missing', advice: 'add username: ...' })
}

/** Builds a login that has no fault. `filled` fills in the variables of a text. */
export function buildLogin(
  { username = '', password = '' }: Static<typeof loginSchema>,
  filled: (text: string) => string,
): HookLogin {
  return { kind: 'basic', username: filled(username), password: filled(password) }
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
