import { isDeepStrictEqual } from 'node:util'

/** Whether two texts of canonical JSON say the same: objects whose fields are in another order do. */
export function isSameJson(a: string, b: string): boolean {
  if (a === b) return true
  if (a.length !== b.length || !isContainer(a) || !isContainer(b)) return false
  return isDeepStrictEqual(JSON.parse(a), JSON.parse(b))
}

function isContainer(text: string): boolean {
  return text.startsWith('{') || text.startsWith('[')
}
