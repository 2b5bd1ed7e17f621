import { parseJson } from '../message/json.ts'

/** The first byte of a schema registry's frame. */
const framed = 0

/**
 * Returns true if a record of `audience-changes` may be a part of a sync, which fits only one layout. The key
 * shows this for a framed record: a single change has its user as the key, and a part has none.
 */
export function mayBeSyncPart(key: Buffer | null, value: Buffer | null): boolean {
  if (value === null || value.length === 0) return false
  if (value[0] === framed) return key === null
  const parsed = parseJson(value.toString())
  if (!parsed.ok || typeof parsed.value !== 'object' || parsed.value === null) return false
  const { type }: { type?: unknown } = parsed.value
  return type === 'sync'
}
