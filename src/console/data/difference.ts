import type { FieldChange } from './types.ts'

/**
 * Returns the fields that differ between two JSON values, in the order of their paths. Objects are compared
 * field by field, lists as a whole.
 */
export function differenceOf(before: unknown, after: unknown, path = ''): readonly FieldChange[] {
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
    return names.flatMap((name) =>
      differenceOf(before[name], after[name], path === '' ? name : `${path}.${name}`),
    )
  }
  if (JSON.stringify(ordered(before)) === JSON.stringify(ordered(after))) return []
  return [{ field: path, before: before ?? null, after: after ?? null }]
}

/**
 * Returns the JSON merge patch (RFC 7396) that makes `after` of `before`: only what differs, and null for
 * what is removed.
 */
export function mergePatchOf(before: Fields, after: Fields): Record<string, unknown> {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  const changed = names.filter((name) => differenceOf(before[name], after[name]).length > 0)
  return Object.fromEntries(
    changed.map((name) => {
      const [old, now] = [before[name], after[name]]
      return [name, isObject(old) && isObject(now) ? mergePatchOf(old, now) : (now ?? null)]
    }),
  )
}

/** The most fields that one line names. */
const mostNamed = 3

/**
 * Says in one line which fields differ, such as `state: on → paused, name`. Only values that are short and no
 * secrets are said. Returns an empty text for an object that is new or gone, of which all fields differ.
 */
export function fieldsText(fields: readonly FieldChange[]): string {
  // Nothing changes the id of an object.
  if (fields.some(({ field }) => field === 'id')) return ''
  const named = fields
    .slice(0, mostNamed)
    .map(({ field, before, after }) =>
      isShort(before) && isShort(after) ? `${field}: ${sideText(before)} → ${sideText(after)}` : field,
    )
  const others = fields.length - named.length
  return [...named, ...(others > 0 ? [`${others} more`] : [])].join(', ')
}

function isNothing(value: unknown): boolean {
  return value === null || value === undefined
}

function isShort(value: unknown): boolean {
  if (typeof value === 'string') return value.length <= 30 && !value.includes('${kept:')
  return isNothing(value) || typeof value === 'number' || typeof value === 'boolean'
}

function sideText(value: unknown): string {
  return isNothing(value) ? 'none' : String(value)
}

type Fields = Readonly<Record<string, unknown>>

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns a value whose objects have their keys in order, so that two spellings of the same are equal. */
function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, ordered(value[key])]),
  )
}
