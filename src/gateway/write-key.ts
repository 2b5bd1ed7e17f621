/**
 * The keys that a request may have been sent with, the most telling first. Clients send their write key as
 * `Basic base64(KEY:)`, some without the colon, or as `writeKey` in the body; some send it in both. Beside a
 * `Bearer` token of another kind the body's key counts, so all are tried.
 */
export function keysOf(authorization: string | undefined, bodyKey?: unknown): readonly string[] {
  const inHeader = authorization === undefined ? undefined : keyOfHeader(authorization)
  const inBody = typeof bodyKey === 'string' && bodyKey !== '' ? bodyKey : undefined
  if (inHeader === undefined) return inBody === undefined ? [] : [inBody]
  return inBody === undefined || inBody === inHeader ? [inHeader] : [inHeader, inBody]
}

function keyOfHeader(authorization: string): string | undefined {
  const [, scheme = '', credentials = ''] = /^(basic|bearer) +([^ ]+) *$/i.exec(authorization) ?? []
  if (credentials === '') return undefined
  if (scheme.toLowerCase() === 'bearer') return credentials
  const decoded = Buffer.from(credentials, 'base64').toString('utf8')
  const colon = decoded.indexOf(':')
  const key = colon === -1 ? decoded : decoded.slice(0, colon)
  return key === '' ? undefined : key
}
