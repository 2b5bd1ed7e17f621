import type { Path } from './fault.ts'
import type { Breach } from './hook-rules.ts'
import { isRecord } from './plain-data.ts'
import { namesVariable } from './variables.ts'

const breach: Breach = {
  problem: 'names a variable, and is used as it is written here',
  advice:
    'write the value itself: ${CATALOG_X} is filled in only in url, in the values of headers, in sharedSecret, nextSharedSecret and serverKeys',
}

/**
 * A text of a catalog is no deeper than this. Faulty data may be deeper, and even contain itself (YAML's
 * aliases).
 */
const maxDepth = 8

/**
 * Finds the variables in places where none is filled in. Sluice would use such a text literally, for example
 * as a write key that everybody can guess. `root` need not be valid by the schema.
 */
export function literalVariables(root: unknown): readonly (readonly [Path, Breach])[] {
  const found: (readonly [Path, Breach])[] = []
  const path: (string | number)[] = []
  visit(root)
  return found

  function visit(value: unknown): void {
    if (typeof value === 'string') {
      if (namesVariable(value) && !isFilledIn(path)) found.push([[...path], breach])
    } else if (path.length < maxDepth && (Array.isArray(value) || isRecord(value))) {
      for (const [step, item] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
        path.push(step)
        visit(item)
        path.pop()
      }
    }
  }
}

function isFilledIn([list, , key, , keyOfHook]: Path): boolean {
  if (list === 'sources') return key === 'serverKeys'
  if (list !== 'destinations') return false
  if (key === 'hooks') return keyOfHook === 'url' || keyOfHook === 'headers'
  return key === 'sharedSecret' || key === 'nextSharedSecret'
}
