import { endOfString } from './json/json-walk.ts'
import type { MessageLimits } from './limits.ts'
import { type Outline, RawList, RawMembers, RawObject } from './message-outline.ts'

/** The limit that a message exceeds: the limit on its levels, or the limit on its keys. */
export type Excess = 'nested_too_deep' | 'too_many_keys'

/** The length of the shortest possible member of an object, which is `"":0,` with its separator. */
const minMemberCharacters = 5

/**
 * Limit on the keys that `enter` adds to a message: version, timestamp, messageId, context, and the four ids
 * of an alias.
 */
const maxAddedKeys = 8

/**
 * Finds out whether a message is nested too deeply or has too many keys. `text` is the JSON from which the
 * message was parsed. Most texts are too short for too many keys, and have too few brackets for too many
 * levels. In that case, the members of the message aren't visited.
 */
export function findExcess(
  text: string,
  message: object,
  limits: Pick<MessageLimits, 'maxDepth' | 'maxKeys'>,
): Excess | undefined {
  const isLong = text.length > (limits.maxKeys - maxAddedKeys) * minMemberCharacters
  return isLong || opensMore(text, limits.maxDepth) ? measure(message, limits) : undefined
}

/**
 * Returns true if the text opens more than `count` brackets. Counts brackets inside strings too, so the
 * result may wrongly be true. In that case, the members of the message are visited although this would not be
 * necessary.
 */
function opensMore(text: string, count: number): boolean {
  let opened = 0
  for (let at = text.indexOf('{'); at !== -1; at = text.indexOf('{', at + 1)) {
    if (++opened > count) return true
  }
  for (let at = text.indexOf('['); at !== -1; at = text.indexOf('[', at + 1)) {
    if (++opened > count) return true
  }
  return false
}

/** Visits the message level by level, because recursion could exhaust the stack. */
function measure(
  message: object,
  { maxDepth, maxKeys }: Pick<MessageLimits, 'maxDepth' | 'maxKeys'>,
): Excess | undefined {
  let keys = 0
  let level = [message]
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > maxDepth) return 'nested_too_deep'
    const next: object[] = []
    for (const container of level) {
      const members: unknown[] = Object.values(container)
      if (!Array.isArray(container)) keys += members.length
      if (keys > maxKeys) return 'too_many_keys'
      for (const member of members) if (isContainer(member)) next.push(member)
    }
    level = next
  }
  return undefined
}

/**
 * Does the same as `findExcess` for the outline of a message. `bytes`: the length of the JSON from which the
 * outline was made. `levels`: the levels of its nesting, or more.
 */
export function findOutlineExcess(
  { bytes, levels }: { readonly bytes: number; readonly levels: number },
  outline: Outline,
  { maxDepth, maxKeys }: Pick<MessageLimits, 'maxDepth' | 'maxKeys'>,
): Excess | undefined {
  // A context that is added is on the second level.
  const isFlat = Math.max(levels, 2) <= maxDepth
  if (isFlat && bytes <= (maxKeys - maxAddedKeys) * minMemberCharacters) return undefined
  let keys = 0
  let isTooDeep = false
  for (const value of Object.values(outline)) {
    if (!(value instanceof RawMembers)) keys++
    if (isRaw(value)) {
      walkText(value.text, maxDepth - 1)
      keys += keysOfText
      isTooDeep ||= keysBeforeDeep !== undefined
    } else if (isContainer(value) && maxDepth < 2) isTooDeep = true
  }
  if (keys > maxKeys) return 'too_many_keys'
  return isTooDeep ? 'nested_too_deep' : undefined
}

/** Returns true if an outline contains a number that is too large for a double. */
export function outlineHoldsInfinite(outline: Outline): boolean {
  return Object.values(outline).some((value) => {
    if (!isRaw(value)) return value === Infinity || value === -Infinity
    isInfiniteFound = false
    walkText(value.text, Infinity)
    return isInfiniteFound
  })
}

function isContainer(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null
}

type Raw = RawObject | RawList | RawMembers

function isRaw(value: unknown): value is Raw {
  return value instanceof RawObject || value instanceof RawList || value instanceof RawMembers
}

type Fields = Readonly<Record<string, unknown>>

/**
 * The result of `measureStructure`. `keys`: the number of keys of all objects. `number_out_of_range`:
 * JSON.parse has read a number as infinite, such as 1e999.
 */
export type Measured =
  | { readonly ok: true; readonly keys: number }
  | { readonly ok: false; readonly fault: Excess | 'number_out_of_range' }

// Only one value is measured at a time, so variables of the module can hold the result.
let keysFound = 0
let isInfiniteFound = false

/**
 * Counts the keys of a value that JSON.parse has read, or of the outline of a message. If the value is over a
 * limit or has an infinite number, returns a fault instead. It may be called for any value, because it visits
 * each member once and stops at the limits on levels and keys. Call this function before JSON.stringify,
 * because JSON.stringify could exhaust the stack if the value is nested too deeply.
 */
export function measureStructure(
  value: object,
  limits: Pick<MessageLimits, 'maxDepth' | 'maxKeys'>,
): Measured {
  keysFound = 0
  isInfiniteFound = false
  const excess = walk(value, limits.maxDepth, limits.maxKeys)
  if (excess !== undefined) return { ok: false, fault: excess }
  return isInfiniteFound ? { ok: false, fault: 'number_out_of_range' } : { ok: true, keys: keysFound }
}

// The results of `walkText`: the number of keys that aren't too deep, and how many of them came before the
// first container that is too deep.
let keysOfText = 0
let keysBeforeDeep: number | undefined

const quote = 0x22
const colon = 0x3a
const openBracket = 0x5b
const closeBracket = 0x5d
const letterE = 0x65
const openBrace = 0x7b
const closeBrace = 0x7d
const nine = 0x39

/** Walks over a text of an outline. A container within more than `levels` containers is too deep. */
function walkText(text: string, levels: number): void {
  keysOfText = 0
  keysBeforeDeep = undefined
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote:
        at = endOfString(text, at) - 1
        break
      case openBracket:
      case openBrace:
        if (++depth > levels) keysBeforeDeep ??= keysOfText
        break
      case closeBracket:
      case closeBrace:
        depth--
        break
      case colon:
        if (depth <= levels) keysOfText++
        break
      case letterE:
        // The exponents of all other numbers have a sign.
        if (text.charCodeAt(at + 1) === nine) isInfiniteFound = true
        break
      default:
    }
  }
}

/** Visits a text of an outline, with the result that `walk` has for its value. */
function walkRaw(raw: Raw, levels: number, maxKeys: number): Excess | undefined {
  walkText(raw.text, levels)
  if (keysFound + (keysBeforeDeep ?? keysOfText) > maxKeys) return 'too_many_keys'
  keysFound += keysOfText
  return keysBeforeDeep === undefined ? undefined : 'nested_too_deep'
}

/** Visits a value by recursion, which is safe because `levels` is at most 1,000. */
function walk(value: unknown, levels: number, maxKeys: number): Excess | undefined {
  if (typeof value === 'number') {
    if (value === Infinity || value === -Infinity) isInfiniteFound = true
    return undefined
  }
  if (!isContainer(value)) return undefined
  if (isRaw(value)) return walkRaw(value, levels, maxKeys)
  if (levels === 0) return 'nested_too_deep'
  return Array.isArray(value) ? walkArray(value, levels - 1, maxKeys) : walkObject(value, levels - 1, maxKeys)
}

function walkArray(members: readonly unknown[], levels: number, maxKeys: number): Excess | undefined {
  for (const member of members) {
    const excess = walk(member, levels, maxKeys)
    if (excess !== undefined) return excess
  }
  return undefined
}

function walkObject(fields: Fields, levels: number, maxKeys: number): Excess | undefined {
  // `for … in` creates no list of keys for each object. It finds no inherited keys, because JSON.parse has
  // made these objects.
  for (const key in fields) {
    const value = fields[key]
    // The name of `RawMembers` is no key.
    if (!(value instanceof RawMembers) && ++keysFound > maxKeys) return 'too_many_keys'
    const excess = walk(value, levels, maxKeys)
    if (excess !== undefined) return excess
  }
  return undefined
}
