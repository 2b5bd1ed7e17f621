import { parseJson } from '../message/json.ts'

/** A schema registry's frame begins with it. */
const framed = 0

/**
 * Whether a record of `audience-changes` may be a part of a sync, which is of one layout alone. Of a framed
 * one its key tells: single changes have their user as theirs, parts have none.
 */
export function mayBeSyncPart(key: Buffer | null, value: Buffer | null): boolean {
  if (value === null || value.length === 0) return false
  if (value[0] === framed) return key === null
  const parsed = parseJson(value.toString())
  if (!parsed.ok || typeof parsed.value !== 'object' || parsed.value === null) return false
  const { type }: { type?: unknown } = parsed.value
  return type === 'sync'
}
