import type { MessageLimits } from './limits.ts'

/** Which limit on its structure a message is over. */
export type Excess = 'nested_too_deep' | 'too_many_keys'

/** The shortest member of an object, with what parts it from the next one: `"":0,`. */
const minMemberCharacters = 5

/** What entering may add to a message: version, timestamp, messageId, context, and four ids of an alias. */
const maxAddedKeys = 8

/**
 * Whether a message is nested too deep, or has too many keys. `text` is what it was parsed from: most are too short for
 * too many keys, and open too few brackets for too many levels, so that nothing need be walked through.
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

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
