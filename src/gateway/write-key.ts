/**
 * Returns the keys with which a request may have been sent. The most reliable key comes first. Clients send
 * their write key as `Basic base64(KEY:)` (some without the colon) or as `writeKey` in the body. Some clients
 * send the key in both places. A `Bearer` token isn't always a key. If it is no key, the key may be in the
 * body. So the caller has to try all returned keys.
 */
export function keysOf(authorization: string | undefined, bodyKey?: unknown): readonly string[] {
  const inHeader = authorization === undefined ? undefined : keyOfHeader(authorization)
  const inBody = typeof bodyKey === 'string' && bodyKey !== '' ? bodyKey : undefined
  if (inHeader === undefined) return inBody === undefined ? [] : [inBody]
  return inBody === undefined || inBody === inHeader ? [inHeader] : [inHeader, inBody]
}

/**
 * Returns true if the header certainly contains a key. Returns false for a `Bearer` token, because the token
 * may be meant for another system, such as a proxy in front of the gateway.
 */
export function saysKey(authorization: string | undefined): boolean {
  return (
    authorization !== undefined && /^basic /i.test(authorization) && keyOfHeader(authorization) !== undefined
  )
}

const keyName = '"writeKey"'
/** Matches the same name, in which letters may be spelled with escapes. */
const spelledName =
  /"(?:w|\\u0077)(?:r|\\u0072)(?:i|\\u0069)(?:t|\\u0074)(?:e|\\u0065)(?:K|\\u004[bB])(?:e|\\u0065)(?:y|\\u0079)"/g
/** The length of the longest spelling of a key, including escapes and quotation marks. */
const mostSpelled = 1_300

/**
 * Yields every text that may be the write key of an unparsed JSON body: each string that follows a
 * `"writeKey"`, anywhere in the body. This search costs much less than parsing the body.
 */
export function* keysIn(bytes: Buffer): Generator<string> {
  let last = ''
  for (const start of valuesIn(bytes)) {
    const spelled = /^\s*:\s*("(?:[^"\\]|\\.)*")/.exec(
      bytes.toString('latin1', start, start + mostSpelled),
    )?.[1]
    if (spelled === undefined || spelled === last) continue
    last = spelled
    const key = unquote(spelled)
    if (key !== undefined) yield key
  }
}

/**
 * Yields the place after each `"writeKey"`. First come those without escapes, and then those with escapes.
 */
function* valuesIn(bytes: Buffer): Generator<number> {
  for (let at = bytes.indexOf(keyName); at !== -1; at = bytes.indexOf(keyName, at + keyName.length))
    yield at + keyName.length
  if (!bytes.includes('\\u00')) return
  for (const { 0: name, index } of bytes.toString('latin1').matchAll(spelledName))
    if (name !== keyName) yield index + name.length
}

/**
 * Decodes a key with its escapes and quotation marks. It is enough to read the body as latin1, because write
 * keys are ASCII.
 */
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
  // Clients send no password. So if the text ends with a colon, everything before this colon is the key, even
  // if the key itself contains colons.
  const colon = decoded.endsWith(':') ? decoded.length - 1 : decoded.indexOf(':')
  const key = colon === -1 ? decoded : decoded.slice(0, colon)
  return key === '' ? undefined : key
}
