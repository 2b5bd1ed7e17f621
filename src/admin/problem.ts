import type { ServerResponse } from 'node:http'

/** The problems with which the admin API refuses a request, as problem details (RFC 9457). */
export const problems = {
  bad_request: [400, 'The request can not be read'],
  no_token: [401, 'A token is needed'],
  not_allowed: [403, 'The token has too few rights'],
  other_site: [403, 'The request comes from another site'],
  not_found: [404, 'Not found'],
  too_slow: [408, 'The request came too slowly'],
  conflict: [409, 'The present state does not allow this'],
  outdated: [412, 'Changed since you have seen it'],
  too_large: [413, 'The body is too large'],
  unknown_type: [415, 'The body is no JSON'],
  answer_too_large: [422, 'The answer is too large'],
  faulty: [422, 'The change has faults'],
  other_request: [422, 'The key belongs to another request'],
  no_condition: [428, 'A condition is needed'],
  busy: [429, 'Too much at once'],
  head_too_large: [431, 'The URL or the headers are too large'],
  internal: [500, 'A fault of Sluice'],
  unavailable: [503, 'Kafka does not answer'],
  log_unavailable: [503, 'The delivery log can not be queried'],
} as const satisfies Record<string, readonly [status: number, title: string]>

export type ProblemCode = keyof typeof problems

export const problemCodes = Object.keys(problems).filter((code): code is ProblemCode =>
  Object.hasOwn(problems, code),
)

/** The `type` of a problem detail. */
export function problemType(code: ProblemCode): string {
  return `/problems/${code.replaceAll('_', '-')}`
}

export type AdminAnswer = {
  readonly status: number
  readonly body: object
  readonly isProblem: boolean
  readonly headers?: Readonly<Record<string, string>>
  /** Writes server-sent events in place of the body, from now on. */
  readonly stream?: (response: ServerResponse) => void
}

/** Creates the answer for a problem. `detail` says what is wrong and what to do. */
export function problem(code: ProblemCode, detail: string): AdminAnswer {
  const [status, title] = problems[code]
  const headers: Record<string, string> = {}
  if (code === 'no_token') headers['www-authenticate'] = 'Bearer'
  if (status === 429 || status === 503) headers['retry-after'] = '5'
  const body = { type: problemType(code), title, status, detail }
  return { status, body, isProblem: true, headers }
}

export const noToken = problem(
  'no_token',
  'Send a token that is in force: Authorization: Bearer sluice_…. `sluice tokens create`, or a line in the file of admin.tokensFile, makes one.',
)

export const otherSite = problem(
  'other_site',
  'A page of another site has sent this, or a proxy has changed its Origin: open the console itself; admin.publicUrl (SLUICE_ADMIN_PUBLIC_URL) is the URL by which browsers reach it.',
)

/** The answer for an object that doesn't exist, or that the token of the request may not see. */
export function missing(kind: string, id: string): AdminAnswer {
  return problem('not_found', `There is no ${kind} ${JSON.stringify(id)}: list those that there are.`)
}

export function done(
  body: object,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): AdminAnswer {
  return { status, body, isProblem: false, headers }
}
