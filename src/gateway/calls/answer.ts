/**
 * An answer of the gateway. The status of every success is 200, because analytics-python treats any other
 * status as an error.
 */
export type Answer = {
  readonly status: 200 | 400 | 401 | 403 | 404 | 408 | 429 | 431 | 500 | 503
  /**
   * The JSON of the answer. It is never empty, because analytics-java repeats a request whose answer has no
   * body.
   */
  readonly body: string
  readonly retryAfterS?: number
  /** The code of the problem, if the request was refused. */
  readonly code?: ProblemCode
}

/** The codes of all problems, each with its HTTP status. */
const statuses = {
  malformed_request: 400,
  malformed_json: 400,
  invalid_body: 400,
  payload_too_large: 400,
  too_many_messages: 400,
  too_dense: 400,
  incomplete_body: 400,
  unknown_write_key: 401,
  unknown_server_key: 401,
  source_not_allowed: 403,
  not_found: 404,
  request_too_slow: 408,
  rate_limited: 429,
  refused_too_often: 429,
  head_too_large: 431,
  internal_error: 500,
  overloaded: 503,
  kafka_unavailable: 503,
} as const satisfies Record<string, Answer['status']>

export type ProblemCode = keyof typeof statuses
export const problemCodes: readonly string[] = Object.keys(statuses)

/** Returns true if a request was refused because of itself, so that its work is charged to its client. */
export function isAtFault({ status }: Answer): boolean {
  return status === 400 || status === 401
}

export function statusOf(code: ProblemCode): Answer['status'] {
  return statuses[code]
}

/** The headers of every answer. They let a page of any site read the answer. */
export const answerHeaders = {
  'content-type': 'application/json; charset=utf-8',
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'retry-after',
}

export const success: Answer = { status: 200, body: '{"success":true}' }

/**
 * Builds the answer for a problem. `message` tells the client's developer what is wrong and what to do. It
 * never quotes what the client sent.
 */
export function problem(code: ProblemCode, message: string, retryAfterS?: number): Answer {
  const answer = { status: statuses[code], body: JSON.stringify({ success: false, code, message }), code }
  return retryAfterS === undefined ? answer : { ...answer, retryAfterS }
}
