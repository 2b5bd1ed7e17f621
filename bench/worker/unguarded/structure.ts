/** A gateway's, which is not measured here. */
export { measureStructure } from '../../../src/message/structure.ts'

/** No limits on depth and keys. */
export function findExcess(): undefined {
  return undefined
}
