// Functions for data that a parser has returned and that has not been checked yet. A record is an object that
// isn't a list.

type PlainRecord = Readonly<Record<string, unknown>>

export function isRecord(value: unknown): value is PlainRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isString(value: unknown): value is string {
  return typeof value === 'string'
}

/** Returns the value if it is a record, else an empty record. */
export function recordOf(value: unknown): PlainRecord {
  return isRecord(value) ? value : {}
}

/** Returns the value if it is a list, else an empty list. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Returns the value of a record's key, or the value at a position of a list. */
export function childOf(value: unknown, step: string | number): unknown {
  return Array.isArray(value) ? listOf(value)[Number(step)] : recordOf(value)[step]
}
