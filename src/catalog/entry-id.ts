import type { Path } from './fault.ts'
import { childOf, recordOf } from './plain-data.ts'

/** The pattern of the id of a source, a destination or a hook. */
export const idPattern = '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'

const wellFormed = new RegExp(idPattern)

/**
 * Returns the id of the source or destination in which a path is. Returns `undefined` if its id isn't well
 * formed, because then it may be anything, such as a secret.
 */
export function idAt(root: unknown, [list, index]: Path): string | undefined {
  if ((list !== 'sources' && list !== 'destinations') || typeof index !== 'number') return undefined
  const { id } = recordOf(childOf(childOf(root, list), index))
  return typeof id === 'string' && wellFormed.test(id) ? id : undefined
}
