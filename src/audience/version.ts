/**
 * Of two values of a property the one with the higher version holds, whatever the order in which they arrive. A version is
 * when the value came about, and the record of `audience-changes` that told of it.
 */
export type Version = {
  /** `changedAt` or `snapshotAt`, in epoch milliseconds. */
  readonly atMs: number
  /** The record was in the user's own partition; at the same time it is above one that was not. */
  readonly isNative: boolean
  readonly partition: number
  readonly offset: number
}

/** Negative when `a` is the lower one, 0 for the same. */
export function compareVersions(a: Version, b: Version): number {
  return (
    a.atMs - b.atMs ||
    Number(a.isNative) - Number(b.isNative) ||
    a.partition - b.partition ||
    a.offset - b.offset
  )
}

export function laterOf(a: Version, b: Version): Version {
  return compareVersions(a, b) >= 0 ? a : b
}

/** The header `since` of an Identify that waits, among others. Does not sort as text. */
export function formatVersion({ atMs, isNative, partition, offset }: Version): string {
  return `${atMs}.${isNative ? 1 : 0}.${partition}.${offset}`
}

/** Reads what `formatVersion` wrote; `undefined` for anything else. */
export function parseVersion(text: string): Version | undefined {
  const first = text.indexOf('.')
  const second = text.indexOf('.', first + 1)
  const third = text.indexOf('.', second + 1)
  if (first < 0 || second !== first + 2 || third < 0) return undefined
  const native = text[first + 1]
  if (native !== '0' && native !== '1') return undefined
  return versionOf(
    wholeNumber(text, 0, first),
    native === '1',
    wholeNumber(text, second + 1, third),
    wholeNumber(text, third + 1, text.length),
  )
}

/** Checks parts that somebody else wrote. */
export function versionOf(
  atMs: unknown,
  isNative: unknown,
  partition: unknown,
  offset: unknown,
): Version | undefined {
  if (!isWhole(atMs) || typeof isNative !== 'boolean' || !isCount(partition) || !isCount(offset))
    return undefined
  return { atMs, isNative, partition, offset }
}

/** Reads a version for each key that is looked at: a regular expression would take longer than all else of it. */
function wholeNumber(text: string, from: number, to: number): number | undefined {
  const isNegative = text.charCodeAt(from) === minus
  const first = isNegative ? from + 1 : from
  const digits = to - first
  if (digits < 1 || digits > maxDigits) return undefined
  if (text.charCodeAt(first) === zero && (digits > 1 || isNegative)) return undefined
  let value = 0
  for (let at = first; at < to; at++) {
    const digit = text.charCodeAt(at) - zero
    if (!(digit >= 0 && digit <= 9)) return undefined
    value = value * 10 + digit
  }
  return isNegative ? -value : value
}

const minus = 0x2d
const zero = 0x30
/** Of 2^53. Larger numbers of so many digits are not taken either. */
const maxDigits = 16

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value)
}

function isCount(value: unknown): value is number {
  return isWhole(value) && value >= 0
}
