import { isDeepStrictEqual } from 'node:util'
import { parseJson } from '../message/json.ts'

/**
 * Returns true if two texts of canonical JSON have the same value. The order of fields in an object doesn't
 * matter.
 */
export function isSameJson(a: string, b: string): boolean {
  if (a === b) return true
  if (a.length !== b.length || !isContainer(a) || !isContainer(b)) return false
  const [one, other] = [parseJson(a), parseJson(b)]
  return one.ok && other.ok && isDeepStrictEqual(one.value, other.value)
}

function isContainer(text: string): boolean {
  return text.startsWith('{') || text.startsWith('[')
}
