/** Asked for by a page of any site before it sends something else than plain text. */
const defaultHeaders = 'authorization, content-type, x-retry-count'
const maxReflected = 1_000
/** Names of headers (RFC 9110, 5.6.2) with commas between them. */
const names = /^[\w!#$%&'*+\-.^`|~]+(?:[ \t]*,[ \t]*[\w!#$%&'*+\-.^`|~]+)*$/

/**
 * `asked`: the header `Access-Control-Request-Headers`. What is no list of names, or too long, isn't
 * repeated.
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
