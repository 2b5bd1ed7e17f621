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

/**
 * Whether the header says a key by itself. A `Bearer` token may be of something else, such as a proxy before
 * us.
 */
export function saysKey(authorization: string | undefined): boolean {
  return (
    authorization !== undefined && /^basic /i.test(authorization) && keyOfHeader(authorization) !== undefined
  )
}

const keyName = '"writeKey"'
/** Of a key, spelled with escapes, and its quotes. */
const mostSpelled = 1_300

/**
 * All that may be the key in a body, in JSON as it came: what follows `"writeKey"`, wherever it stands. To
 * look for it costs a fraction of reading the body.
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

/** Write keys are ASCII. */
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
