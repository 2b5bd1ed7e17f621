import type { MessageLimits } from './limits.ts'

/** The limit on structure that a message exceeds. */
export type Excess = 'nested_too_deep' | 'too_many_keys'

/** Length of the shortest member of an object, with its separator: `"":0,`. */
const minMemberCharacters = 5

/**
 * The most keys that entering may add to a message: version, timestamp, messageId, context, and the four ids
 * of an alias.
 */
const maxAddedKeys = 8

/**
 * Finds out whether a message is nested too deeply or has too many keys. `text` is the text from which it was
 * parsed. Most texts are too short to have too many keys, and open too few brackets to have too many levels.
 * For such a text, the message itself isn't walked through.
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
 * Returns true if the text opens more than `count` brackets. Brackets inside strings count too. This may only
 * cause a needless walk.
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

/** Walks the message level by level, because recursion could exhaust the stack. */
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

function isContainer(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null
}

type Fields = Readonly<Record<string, unknown>>

/**
 * The result of `measureStructure`. `keys` counts the keys of all objects. `number_out_of_range`: JSON.parse
 * has read a number as infinite, such as 1e999.
 */
export type Measured =
  | { readonly ok: true; readonly keys: number }
  | { readonly ok: false; readonly fault: Excess | 'number_out_of_range' }

// One value is measured at a time, so these variables hold the result.
let keysFound = 0
let isInfiniteFound = false

/**
 * Counts the keys of a value that JSON.parse has read, and returns the fault if the value can't be written.
 * Visits each member once. Goes no deeper, and visits no more keys, than the limits allow. So it may be
 * called for any value. Call it before JSON.stringify, because deep nesting could make JSON.stringify exhaust
 * the stack.
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

/** Walks a value by recursion, which is safe because `levels` is at most 1,000. */
function walk(value: unknown, levels: number, maxKeys: number): Excess | undefined {
  if (typeof value === 'number') {
    if (value === Infinity || value === -Infinity) isInfiniteFound = true
    return undefined
  }
  if (!isContainer(value)) return undefined
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
  // `for … in` finds no inherited keys here, and makes no list of keys for each object.
  for (const key in fields) {
    if (++keysFound > maxKeys) return 'too_many_keys'
    const excess = walk(fields[key], levels, maxKeys)
    if (excess !== undefined) return excess
  }
  return undefined
}
