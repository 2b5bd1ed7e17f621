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
  const [atMs, native, partition, offset, ...rest] = text.split('.')
  if (rest.length > 0 || (native !== '0' && native !== '1')) return undefined
  return versionOf(wholeNumber(atMs), native === '1', wholeNumber(partition), wholeNumber(offset))
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

function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^(?:0|-?[1-9]\d{0,15})$/.test(text) ? Number(text) : undefined
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value)
}

function isCount(value: unknown): value is number {
  return isWhole(value) && value >= 0
}
