/**
 * Returns the keys that a request may have been sent with, the most reliable first. Clients send their write
 * key as `Basic base64(KEY:)` (some without the colon) or as `writeKey` in the body. Some send it in both
 * places. A `Bearer` token isn't always a key. If it isn't, the key in the body counts. So the caller tries
 * all keys.
 */
export function keysOf(authorization: string | undefined, bodyKey?: unknown): readonly string[] {
  const inHeader = authorization === undefined ? undefined : keyOfHeader(authorization)
  const inBody = typeof bodyKey === 'string' && bodyKey !== '' ? bodyKey : undefined
  if (inHeader === undefined) return inBody === undefined ? [] : [inBody]
  return inBody === undefined || inBody === inHeader ? [inHeader] : [inHeader, inBody]
}

/**
 * Returns true if the header certainly holds a key. A `Bearer` token isn't certain: it may belong to
 * something else, such as a proxy in front of the gateway.
 */
export function saysKey(authorization: string | undefined): boolean {
  return (
    authorization !== undefined && /^basic /i.test(authorization) && keyOfHeader(authorization) !== undefined
  )
}

const keyName = '"writeKey"'
/** The longest spelling of a key, with escapes and quotes. */
const mostSpelled = 1_300

/**
 * Yields every text that may be the key in an unparsed JSON body: each string after a `"writeKey"`, at any
 * place in the body. This search costs a fraction of parsing the body.
 */
export function* keysIn(bytes: Buffer): Generator<string> {
  let last = ''
  for (let at = bytes.indexOf(keyName); at !== -1; at = bytes.indexOf(keyName, at + keyName.length)) {
    const start = at + keyName.length
    const spelled = /^\s*:\s*("(?:[^"\\]|\\.)*")/.exec(
      bytes.toString('latin1', start, start + mostSpelled),
    )?.[1]
    if (spelled === undefined || spelled === last) continue
    last = spelled
    const key = unquote(spelled)
    if (key !== undefined) yield key
  }
}

/** Decodes a spelled key. Reading the body as latin1 is enough, since write keys are ASCII. */
function unquote(spelled: string): string | undefined {
  try {
    return String(JSON.parse(spelled))
  } catch {
    return undefined
  }
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
