/**
 * Returns the place of a fault in the condition of a filter, from 0, of which the server says `at character
 * N`. `undefined`: the server names none.
 */
export function faultPlace(detail: string): number | undefined {
  const found = /filter\.condition (?:(?!mappings\[).)*? at character (\d+)/s.exec(detail)
  return found?.[1] === undefined ? undefined : Number(found[1]) - 1
}
