/**
 * The headers that are allowed if a preflight names no headers. The browser sends a preflight before a page
 * of another site sends anything but plain text.
 */
const defaultHeaders = 'authorization, content-type, x-retry-count'
const maxReflected = 1_000
/** Names of headers (RFC 9110, 5.6.2) with commas between them. */
const names = /^[\w!#$%&'*+\-.^`|~]+(?:[ \t]*,[ \t]*[\w!#$%&'*+\-.^`|~]+)*$/

/**
 * Returns the headers that answer a preflight. `asked` is the preflight's `Access-Control-Request-Headers`.
 * The answer repeats this text, unless it is too long or isn't a list of names.
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
