import { isCount } from '../message/json-values.ts'
import { NumberReader } from './number-reader.ts'

/**
 * Of two values of a property the one with the higher version holds, whatever the order in which they arrive.
 * A version is when the value came about, and the record of `audience-changes` that told of it.
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

/** Above all that came about up to then. Only to compare with: no record has it. */
export function endOf(atMs: number): Version {
  return { atMs, isNative: true, partition: Infinity, offset: Infinity }
}

/** The header `since` of an Identify that waits, among others. Does not sort as text. */
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

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value)
}
