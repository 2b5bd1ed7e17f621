/** Ways into data of any shape, as a parser gives it back. */

type PlainRecord = Readonly<Record<string, unknown>>

function isRecord(value: unknown): value is PlainRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isString(value: unknown): value is string {
  return typeof value === 'string'
}

/** The value, or an empty record when it is none. */
export function recordOf(value: unknown): PlainRecord {
  return isRecord(value) ? value : {}
}

/** The value, or an empty list when it is none. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** What a record holds under a key, or a list at a position. */
export function childOf(value: unknown, step: string | number): unknown {
  return Array.isArray(value) ? listOf(value)[Number(step)] : recordOf(value)[step]
}
