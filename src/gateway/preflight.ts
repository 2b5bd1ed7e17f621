/**
 * The headers that the answer to a preflight request allows by default. A browser sends a preflight request
 * before a page of another site may send anything except plain text.
 */
const defaultHeaders = 'authorization, content-type, x-retry-count'
const maxReflected = 1_000
/** Names of headers (RFC 9110, 5.6.2) with commas between them. */
const names = /^[\w!#$%&'*+\-.^`|~]+(?:[ \t]*,[ \t]*[\w!#$%&'*+\-.^`|~]+)*$/

/**
 * Returns the headers of the answer to a preflight request. `asked` is the `Access-Control-Request-Headers`
 * of the preflight request. If this list isn't too long and contains only names of headers, the answer
 * repeats it. Otherwise the answer allows the default headers.
 */
export function preflightHeaders(asked: string | undefined): Readonly<Record<string, string>> {
  const isList = asked !== undefined && asked.length <= maxReflected && names.test(asked)
  return {
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'GET, POST, OPTIONS',
    'access-control-allow-headers': isList ? asked : defaultHeaders,
    'access-control-max-age': '86400',
    vary: 'access-control-request-headers',
  }
}
