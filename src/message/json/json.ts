import { endOfString, endOfValue } from './json-walk.ts'

/**
 * Parses JSON text from an untrusted producer. Does the same as JSON.parse, but avoids a bug of V8 in Node 24
 * and 26 (nodejs/node#63785). In these versions, JSON.parse can misread a key that is spelled with an escape.
 * For example, after an object with a key `\` was parsed, a key spelled `"\n"` in the same place becomes `\`.
 * So the keys of one producer could change the keys of another producer.
 *
 * Instead of a misread key, JSON.parse returns the beginning of its spelling, up to and including a
 * backslash. So if no returned key contains a backslash, no key was misread.
 */
export function parseJson(text: string): { ok: true; value: unknown } | { ok: false } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { ok: false }
  }
  return { ok: true, value: withOwnKeys(text, value) }
}

/** Returns what a text means, given what JSON.parse has made of it, which may have misread keys. */
export function withOwnKeys(text: string, value: unknown): unknown {
  const isSuspect = mayHaveEscapedKey(text) && hasMember(value, (key) => key.includes('\\'))
  return isSuspect ? readAgain(text) : value
}

/**
 * Returns true if `isSought` returns true for at least one member, at any depth. Members of arrays have the
 * key ''. Uses a list instead of recursion, because deep nesting could exhaust the stack.
 */
export function hasMember(root: unknown, isSought: (key: string, value: unknown) => boolean): boolean {
  const pending = [root]
  while (pending.length > 0) {
    const next = pending.pop()
    if (Array.isArray(next)) {
      for (const item of next) {
        if (isSought('', item)) return true
        if (typeof item === 'object') pending.push(item)
      }
    } else if (isRecord(next)) {
      for (const key of Object.keys(next)) {
        const value = next[key]
        if (isSought(key, value)) return true
        if (typeof value === 'object') pending.push(value)
      }
    }
  }
  return false
}

/** Returns true if a value is or contains a number that JSON.parse has read as infinite, such as 1e999. */
export function holdsInfinite(value: unknown): boolean {
  return hasMember([value], (_key, member) => member === Infinity || member === -Infinity)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/**
 * Returns true if a text has a string with an escape in it, and a colon after this string. Looks only at the
 * places of escapes, because most texts have few escapes.
 */
function mayHaveEscapedKey(text: string): boolean {
  let quote = -1
  for (let escape = text.indexOf('\\'); escape !== -1;) {
    const rest = escape + 2
    // The next quotation mark is searched for only if it isn't known yet, because many escapes of a long
    // string have the same next quotation mark.
    if (quote < rest) quote = text.indexOf('"', rest)
    const next = text.indexOf('\\', rest)
    const isLastOfString = next === -1 || quote < next
    if (isLastOfString && isFollowedByColon(text, quote)) return true
    escape = next
  }
  return false
}

function isFollowedByColon(text: string, quote: number): boolean {
  let at = quote + 1
  while (at < text.length && ' \n\r\t'.includes(text.charAt(at))) at += 1
  return text[at] === ':'
}

/** An open container. `end`: the place of the end of a list. */
type Container =
  | { items: unknown[]; end: number }
  | { fields: Record<string, unknown>; key: string | undefined }

const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d
const space = 0x20

/**
 * Returns the places of the containers that have an escaped key in them, at any depth, each with the place of
 * its end. They are in the order of the text. Reads each character once.
 */
function aroundEscapedKeys(text: string): ReadonlyMap<number, number> {
  const ends = new Map<number, number>()
  const open: number[] = []
  let escape = text.indexOf('\\')
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at)
    if (character === openBrace || character === openBracket) open.push(at)
    else if (character === closeBrace || character === closeBracket) {
      const start = open.pop() ?? 0
      if (ends.has(start)) ends.set(start, at)
    } else if (character === quote) {
      const end = endOfString(text, at)
      if (escape !== -1 && escape < end) {
        if (isFollowedByColon(text, end - 1)) addOpen(open, ends)
        escape = text.indexOf('\\', end)
      }
      at = end - 1
    }
  }
  return ends
}

/** Adds the open containers. Those around one that was added before were added too. */
function addOpen(open: readonly number[], ends: Map<number, number>): void {
  let level = open.length
  while (level > 0 && !ends.has(open[level - 1] ?? 0)) level--
  for (; level < open.length; level++) ends.set(open[level] ?? 0, 0)
}

/**
 * Parses a text that JSON.parse has accepted, key by key, in the containers that have an escaped key in them.
 * JSON.parse reads everything between these containers. Uses a list of the open containers instead of
 * recursion, because deep nesting could exhaust the stack.
 */
function readAgain(text: string): unknown {
  const suspects = aroundEscapedKeys(text)
  const starts = [...suspects.keys()]
  const root: unknown[] = []
  const open: Container[] = []
  let top: Container = { items: root, end: text.length }
  let next = 0
  let at = 0
  while (at < text.length) {
    const character = text.charCodeAt(at)
    const end = suspects.get(at)
    if (end !== undefined) {
      open.push(top)
      top = character === openBrace ? { fields: dictionary(), key: undefined } : { items: [], end }
      next++
      at += 1
    } else if (character === closeBrace || character === closeBracket) {
      const closed = 'items' in top ? top.items : top.fields
      top = open.pop() ?? { items: root, end: text.length }
      put(top, closed)
      at += 1
    } else if (isBetween(character)) at += 1
    else if ('items' in top) {
      const start = starts[next] ?? text.length
      // The items up to the comma before the next of these containers, or up to the end of the list.
      const until = start < top.end ? text.lastIndexOf(',', start) : top.end
      for (const item of listOf(text.slice(at, until))) top.items.push(item)
      at = until
    } else {
      const valueEnd = character === quote ? endOfString(text, at) : endOfValue(text, at)
      const token = text.slice(at, valueEnd)
      if (top.key === undefined) top.key = readString(token)
      else put(top, JSON.parse(token))
      at = valueEnd
    }
  }
  return root[0]
}

function listOf(items: string): readonly unknown[] {
  return JSON.parse(`[${items}]`)
}

/**
 * Creates an object for which V8 makes no hidden class. With hidden classes, a text with tens of thousands of
 * objects, each with a different field, would cost four times as much.
 */
function dictionary(): Record<string, unknown> {
  const fields: Record<string, unknown> = Object.create(null)
  Object.setPrototypeOf(fields, Object.prototype)
  return fields
}

/**
 * Reads a string. If it has escapes, calls JSON.parse, which reads a string correctly because a string has no
 * keys. Otherwise takes a slice of the text, which costs less.
 */
function readString(token: string): string {
  return token.includes('\\') ? String(JSON.parse(token)) : token.slice(1, -1)
}

/**
 * Adds a value to a container. Adds the field `__proto__` by `defineProperty`, because an assignment would
 * set the prototype. Assigns all other fields, because `defineProperty` costs many times as much.
 */
function put(container: Container, value: unknown): void {
  if ('items' in container) {
    container.items.push(value)
    return
  }
  const { fields, key = '' } = container
  if (key === '__proto__') {
    Object.defineProperty(fields, key, { value, writable: true, enumerable: true, configurable: true })
  } else {
    fields[key] = value
  }
  container.key = undefined
}

/**
 * Returns true for a separator between tokens. Control characters count as separators, because a text that
 * JSON.parse has accepted has them only where spaces are allowed.
 */
function isBetween(character: number): boolean {
  return character <= space || character === comma || character === colon
}

/** Returns true if a value is a text that isn't empty. */
export function isFilled(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Returns true if a value is an exact whole number of 0 or more. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
