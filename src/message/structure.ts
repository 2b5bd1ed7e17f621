import type { MessageLimits } from './limits.ts'

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

function isContainer(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null
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
 * Counts the keys of a value that JSON.parse has read. If the value is over a limit or has an infinite
 * number, returns a fault instead. It may be called for any value, because it visits each member once and
 * stops at the limits on levels and keys. Call this function before JSON.stringify, because JSON.stringify
 * could exhaust the stack if the value is nested too deeply.
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

/** Visits a value by recursion, which is safe because `levels` is at most 1,000. */
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
  // `for … in` creates no list of keys for each object. It finds no inherited keys, because JSON.parse has
  // made these objects.
  for (const key in fields) {
    if (++keysFound > maxKeys) return 'too_many_keys'
    const excess = walk(fields[key], levels, maxKeys)
    if (excess !== undefined) return excess
  }
  return undefined
}
