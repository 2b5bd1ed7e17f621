import { skipSpace, skipString, startOf, weigh } from '../../message/json/json-skip.ts'
import { backslash, comma, openBrace, quote } from '../../message/json/json-bytes.ts'

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
/** The length of the longest spelling of a key, including escapes and quotation marks. */
const mostSpelled = 1_300
/** A body with more names than this is read member by member, so that many names cost no more than few. */
const mostNames = 16

/**
 * Yields the texts that may be the write key of an unparsed JSON body. At first, these are the strings that
 * follow the first few `"writeKey"`, anywhere in the body. This search costs much less than parsing the body.
 * If it isn't enough to find the key, the key itself comes last, unless `search` ends before.
 */
export function* keysIn(bytes: Buffer, search: KeySearch = { leftBytes: Infinity }): Generator<string> {
  let names = 0
  let last = ''
  let at = bytes.indexOf(keyName)
  for (; at !== -1 && names < mostNames; names++) {
    const start = at + keyName.length
    at = bytes.indexOf(keyName, start)
    const spelled = /^\s*:\s*("(?:[^"\\]|\\.)*")/.exec(
      bytes.toString('latin1', start, start + mostSpelled),
    )?.[1]
    if (spelled === undefined || spelled === last) continue
    last = spelled
    const key = unquote(spelled)
    if (key !== undefined) yield key
  }
  if (at === -1 && !mayHaveEscapedName(bytes, search)) return
  const key = keyIn(bytes, search)
  if (key !== undefined && key !== unquote(last)) yield key
}

/** So many backslashes of a dense body are looked at. */
const mostSeeks = 16

/**
 * Returns false if no member of a body can spell its name with an escape, such as `\u0077`. In a dense body,
 * many backslashes would cost more to search than to read its members.
 */
function mayHaveEscapedName(bytes: Buffer, { leftBytes }: KeySearch): boolean {
  if (leftBytes >= bytes.length) return bytes.includes('\\u00')
  let at = bytes.indexOf(backslash)
  for (let seeks = 0; at !== -1; seeks++) {
    if (seeks === mostSeeks || bytes[at + 1] === letterU) return true
    at = bytes.indexOf(backslash, at + 2)
  }
  return false
}

const letterU = 0x75

/**
 * How many bytes outside of long texts may still be read member by member. 0 or less: there were more, so the
 * key isn't known.
 */
export type KeySearch = { leftBytes: number }

/** A byte of a long text that was read one by one counts as much as this part of another byte. */
const slowPart = 1 / 16

/** The limit on the members of a body that are looked at. No message may have as many. */
const mostMembers = 10_000

/**
 * Returns the write key of an unparsed JSON body: the last member `writeKey` of its object, if it is a text.
 * Reads each byte at most once.
 */
export function keyIn(bytes: Buffer, search: KeySearch = { leftBytes: Infinity }): string | undefined {
  let keyStart = 0
  let keyEnd = 0
  let at = skipSpace(bytes, startOf(bytes))
  search.leftBytes -= at
  if (bytes[at] !== openBrace) return undefined
  let count = 0
  do {
    const memberAt = at
    const nameStart = skipSpace(bytes, at + 1)
    const nameEnd = skipString(bytes, nameStart)
    const start = skipSpace(bytes, skipSpace(bytes, nameEnd) + 1)
    const value = weigh(bytes, start, search.leftBytes)
    const end = start + value.bytes
    at = skipSpace(bytes, Math.max(end, start))
    search.leftBytes -= at - memberAt - value.long + value.slow * slowPart
    if (search.leftBytes <= 0) return undefined
    if (isKeyName(bytes, nameStart + 1, nameEnd - 1)) [keyStart, keyEnd] = [start, end]
  } while (bytes[at] === comma && ++count < mostMembers)
  if (bytes[keyStart] !== quote || keyEnd - keyStart > mostSpelled) return undefined
  return unquote(bytes.toString('latin1', keyStart, keyEnd))
}

/** The spellings of the letters of the name as escapes, in lower case. */
const name = 'writeKey'
const escapes = Array.from(name, (letter) => Buffer.from(`\\u00${letter.charCodeAt(0).toString(16)}`))
const lowerCase = 0x20

/** Returns true if the bytes between `start` and `end` spell the name, with or without escapes. */
function isKeyName(bytes: Buffer, start: number, end: number): boolean {
  let at = start
  for (let index = 0; index < name.length; index++) {
    const escape = escapes[index] ?? nothing
    if (bytes[at] === name.charCodeAt(index)) at++
    else if (bytes[at] === backslash && isEscape(bytes, at, escape)) at += escape.length
    else return false
  }
  return at === end
}

function isEscape(bytes: Buffer, start: number, escape: Buffer): boolean {
  for (let index = 1; index < escape.length; index++) {
    const byte = bytes[start + index] ?? 0
    if (byte !== escape[index] && (index < 2 || (byte | lowerCase) !== escape[index])) return false
  }
  return true
}

const nothing = Buffer.alloc(0)

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
