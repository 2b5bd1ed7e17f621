import type { MessageLimits } from './limits.ts'

/** Which limit on its structure a message is over. */
export type Excess = 'nested_too_deep' | 'too_many_keys'

/** The shortest member of an object, with what parts it from the next one: `"":0,`. */
const minMemberCharacters = 5

/**
 * What entering may add to a message at the most: version, timestamp, messageId, context, and four ids of an
 * alias.
 */
const maxAddedKeys = 8

/**
 * Whether a message is nested too deep, or has too many keys. `text` is what it was parsed from: most are too
 * short for too many keys, and open too few brackets for too many levels, so that nothing need be walked
 * through.
 */
export function findExcess(
  text: string,
  message: object,
  limits: Pick<MessageLimits, 'maxDepth' | 'maxKeys'>,
): Excess | undefined {
  const isLong = text.length > (limits.maxKeys - maxAddedKeys) * minMemberCharacters
  return isLong || opensMore(text, limits.maxDepth) ? measure(message, limits) : undefined
}

/** Brackets inside of strings count too: that only costs a walk. */
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

/** Level by level: the stack could be exhausted. */
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
 * `keys` are those of all objects together. `number_out_of_range`: JSON.parse has read one as infinite, such
 * as 1e999.
 */
export type Measured =
  | { readonly ok: true; readonly keys: number }
  | { readonly ok: false; readonly fault: Excess | 'number_out_of_range' }

// One value is weighed at a time.
let keysFound = 0
let isInfiniteFound = false

/**
 * Counts the keys of what JSON.parse has read, and says what keeps it from being written. Looks at each
 * member once, and at no more of them than the limits allow: of any value it may be asked before
 * JSON.stringify, whose stack is bounded.
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

/** By the stack: `levels` is at most 1,000. */
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
  // Nothing is inherited that it would come upon, and a list of keys isn't made for each.
  for (const key in fields) {
    if (++keysFound > maxKeys) return 'too_many_keys'
    const excess = walk(fields[key], levels, maxKeys)
    if (excess !== undefined) return excess
  }
  return undefined
}
