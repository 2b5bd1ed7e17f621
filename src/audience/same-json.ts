import { isDeepStrictEqual } from 'node:util'

/**
 * Returns true if two texts of canonical JSON have the same value. The order of fields in an object doesn't
 * matter.
 */
export function isSameJson(a: string, b: string): boolean {
  if (a === b) return true
  if (a.length !== b.length || !isContainer(a) || !isContainer(b)) return false
  return isDeepStrictEqual(JSON.parse(a), JSON.parse(b))
}

function isContainer(text: string): boolean {
  return text.startsWith('{') || text.startsWith('[')
}
