import { parseJson } from '../message/json/json.ts'

/** The first byte of a schema registry's frame. */
const framed = 0

/**
 * Returns true if a record of `audience-changes` may be a part of a sync. A part of a sync can be used only
 * in the layout for which it was made. If the value begins with a schema registry's frame, only the key shows
 * this. A single change has its user as the key, and a part of a sync has no key.
 */
export function mayBeSyncPart(key: Buffer | null, value: Buffer | null): boolean {
  if (value === null || value.length === 0) return false
  if (value[0] === framed) return key === null
  const parsed = parseJson(value.toString())
  if (!parsed.ok || typeof parsed.value !== 'object' || parsed.value === null) return false
  const { type }: { type?: unknown } = parsed.value
  return type === 'sync'
}
