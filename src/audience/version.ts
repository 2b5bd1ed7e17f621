import { isCount } from '../message/json-values.ts'
import { NumberReader } from './number-reader.ts'

/**
 * The version of a value: when the value came about, and which record of `audience-changes` reported it. Of
 * two values of a property, the one with the higher version wins, in whatever order they arrive.
 */
export type Version = {
  /** `changedAt` or `snapshotAt`, in epoch milliseconds. */
  readonly atMs: number
  /**
   * True if the record was in the user's own partition. Of two versions with the same `atMs`, the one from
   * the user's own partition is higher.
   */
  readonly isNative: boolean
  readonly partition: number
  readonly offset: number
}

/** Compares two versions. Negative when `a` is the lower one, 0 when they are the same. */
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
 * Returns a version above everything that came about up to a time. Use it only for comparisons: no record has
 * it.
 */
export function endOf(atMs: number): Version {
  return { atMs, isNative: true, partition: Infinity, offset: Infinity }
}

/**
 * Formats a version, for example for the header `since` of an Identify that waits. The result does not sort
 * as text.
 */
export function formatVersion({ atMs, isNative, partition, offset }: Version): string {
  return `${atMs}.${isNative ? 1 : 0}.${partition}.${offset}`
}

/** Reads what `formatVersion` wrote; `undefined` for anything else. */
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

/** Builds a version from parts that another program wrote. `undefined` if they are no version. */
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
