import { NumberReader } from './number-reader.ts'
import { isCount } from '../../message/json/json.ts'

/**
 * The version of a value: the time at which the value came about, and the record of `audience-changes` that
 * reported it. Of two values of a property, the value with the higher version counts, in whatever order the
 * values arrive.
 */
export type Version = {
  /** The `changedAt` or `snapshotAt` of the record, in epoch milliseconds. */
  readonly atMs: number
  /**
   * True if the record was in the user's own partition. Of two versions with the same `atMs`, the one from
   * the user's own partition is higher.
   */
  readonly isNative: boolean
  readonly partition: number
  readonly offset: number
}

/** Compares two versions. Returns a negative number if `a` is lower than `b`, and 0 if they are the same. */
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

/**
 * Returns a version that is higher than the versions of all values that came about up to a time. Use the
 * result only for comparisons, because no record has this version.
 */
export function endOf(atMs: number): Version {
  return { atMs, isNative: true, partition: Infinity, offset: Infinity }
}

/**
 * Formats a version, for example for the header `since` of an Identify that waits. The order of these texts
 * is not the order of the versions.
 */
export function formatVersion({ atMs, isNative, partition, offset }: Version): string {
  return `${atMs}.${isNative ? 1 : 0}.${partition}.${offset}`
}

export function parseVersion(text: string): Version | undefined {
  const reader = new NumberReader(text, 0)
  const atMs = reader.next()
  const isNative = reader.skip('.1.')
  if (!isNative && !reader.skip('.0.')) return undefined
  const partition = reader.next()
  if (!reader.skip('.')) return undefined
  const offset = reader.next()
  return reader.at === text.length ? versionOf(atMs, isNative, partition, offset) : undefined
}

/**
 * Builds a version from values that another program wrote. Returns `undefined` if the values are no valid
 * version.
 */
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

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value)
}

export type PropertyStateKey = {
  readonly kind: 'property'
  readonly userId: string
  readonly spaceId: string
  readonly property: string
}

/** The value of a property, and the audience or trait to which the property belongs. */
export type PropertyState = {
  readonly kind: 'audience' | 'trait'
  readonly id: string
  readonly name: string
  /** The value as JSON text, in the spelling of `JSON.stringify`. */
  readonly value: string
  readonly version: Version
  /** The version with which this value was sent to receivers. It is never higher than `version`. */
  readonly since: Version
}
