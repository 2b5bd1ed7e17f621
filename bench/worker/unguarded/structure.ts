/** Only gateways call this function, and this benchmark measures no gateway. So it stays as it is. */
export { measureStructure } from '../../../src/message/depth-and-keys.ts'

/** Finds nothing, so that depth and keys have no limits. */
export function findExcess(): undefined {
  return undefined
}
