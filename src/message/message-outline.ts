import { endOfString, endOfValue, eachMember } from './json/json-walk.ts'

// An outline of a message has only those fields as values that Sluice reads. All else in the message stays
// text. So the cost of completing a message doesn't depend on what is nested in it. Making values of it could
// cost many times as much: V8 makes a hidden class for each new order of keys.

/** A JSON object of a message that stays text. */
export class RawObject {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  /** Returns the members with their texts, each with its key. */
  members(): { readonly name: string; readonly text: string }[] {
    const found: { name: string; text: string }[] = []
    eachMember(this.text, 1, (start, valueStart, end) => {
      found.push({ name: nameIn(this.text, start, valueStart - 1), text: this.text.slice(start, end) })
    })
    return found
  }
}

/** A JSON list of a message that stays text. The list itself is empty. */
export class RawList extends Array<never> {
  readonly text: string

  constructor(text: string) {
    super()
    this.text = text
  }
}

/** Neighbouring members of a message that stay text: keys and values, with commas between them. */
export class RawMembers {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/**
 * A message whose nested objects and lists are `RawObject` and `RawList`, and whose unknown fields are
 * `RawMembers`. An object without these is an outline too.
 */
export type Outline = { readonly [field: string]: unknown }

/** The fields of messages that the code of Sluice reads. They have no escapes in JSON. */
const known: ReadonlySet<string> = new Set([
  'type',
  'version',
  'messageId',
  'userId',
  'anonymousId',
  'previousId',
  'User ID',
  'Previous ID',
  'event',
  'groupId',
  'timestamp',
  'originalTimestamp',
  'sentAt',
  'receivedAt',
  'writeKey',
  'context',
  'integrations',
  'properties',
  'traits',
])

/** Names of `RawMembers` begin with a character that no known field has. */
const runMark = '\0'
/**
 * JavaScript puts keys that are indexes before all others, also before those that Sluice adds. So the
 * members with such keys are under an index too.
 */
const indexRun = '0'
const index = /^(?:0|[1-9]\d{0,9})$/
const mostIndex = 2 ** 32 - 2

/** Returns the outline of a JSON object. The text must be canonical, as `respell` returns it. */
export function outlineOf(text: string): Outline {
  const fields: { [field: string]: unknown } = {}
  const last = text.length - 1
  let at = 1
  while (at < last) {
    const end = endOfString(text, at)
    if (!isIndex(text.slice(at + 1, end - 1))) break
    at = endOfValue(text, end + 1) + 1
  }
  if (at > 1) fields[indexRun] = new RawMembers(text.slice(1, Math.min(at - 1, last)))
  let runStart = at
  let runs = 0
  while (at < last) {
    const keyEnd = endOfString(text, at)
    const end = endOfValue(text, keyEnd + 1)
    const key = text.slice(at + 1, keyEnd - 1)
    if (known.has(key)) {
      if (at > runStart) fields[`${runMark}${runs++}`] = new RawMembers(text.slice(runStart, at - 1))
      fields[key] = valueIn(text, keyEnd + 1, end)
      runStart = end + 1
    }
    at = end + 1
  }
  if (last > runStart) fields[`${runMark}${runs}`] = new RawMembers(text.slice(runStart, last))
  return fields
}

/** Returns true for a key that JavaScript treats as an index. */
export function isIndex(key: string): boolean {
  return index.test(key) && Number(key) <= mostIndex
}

/**
 * Returns the value of a member of a canonical JSON object. Returns `undefined` if there is no such member.
 */
export function memberOf(text: string, name: string): unknown {
  let value: unknown
  eachMember(text, 1, (start, valueStart, end) => {
    if (valueStart - start !== name.length + 3 || !text.startsWith(name, start + 1)) return false
    value = valueIn(text, valueStart, end)
    return true
  })
  return value
}

function valueIn(text: string, start: number, end: number): unknown {
  return valueOf(text.slice(start, end))
}

/** Returns the value of a canonical JSON text, as it is in an outline. */
export function valueOf(raw: string): unknown {
  switch (raw[0]) {
    case '{':
      return new RawObject(raw)
    case '[':
      return new RawList(raw)
    case '"':
      return raw.includes('\\') ? JSON.parse(raw) : raw.slice(1, -1)
    default:
      return JSON.parse(raw)
  }
}

function nameIn(text: string, start: number, end: number): string {
  const spelled = text.slice(start, end)
  return spelled.includes('\\') ? String(JSON.parse(spelled)) : spelled.slice(1, -1)
}

/** Writes an outline as JSON.stringify would write the message. */
export function writeOutline(outline: Outline): string {
  let text = ''
  // `for … in` creates no list of names. An outline has no inherited names.
  for (const name in outline) {
    const value = outline[name]
    if (value === undefined) continue
    text += text === '' ? '{' : ','
    text += value instanceof RawMembers ? value.text : `${JSON.stringify(name)}:${textOf(value)}`
  }
  return text === '' ? '{}' : `${text}}`
}

/** Writes a value of an outline as JSON. */
export function textOf(value: unknown): string {
  const isRaw = typeof value === 'object' && (value instanceof RawObject || value instanceof RawList)
  return isRaw ? value.text : JSON.stringify(value)
}
