import { readFieldPath, someValueIn } from '../message/field-path.ts'
import type { KeyedHash } from './user-hash.ts'

/** Limits on the values of messages by which the delivery log can be searched. */
export const indexedLimits = {
  /** The most bytes of a value in UTF-8. A longer value isn't indexed. */
  valueBytes: 256,
  /** The most values of one message. Further values aren't indexed. */
  values: 16,
} as const

/**
 * Returns the hashes of the chosen values of a message, one after the other, as a text with one character for
 * each byte. The text is empty if the message has none. `body`: the message in its canonical form.
 */
export type ValuesOf = (body: Buffer) => string

/**
 * Creates the function that finds the values of the chosen fields and hashes them. The log names no field of
 * a value, so who searches needs only the value. A body is read only once, although many deliveries send it.
 */
export function createValuesOf(paths: readonly string[], hash: KeyedHash): ValuesOf {
  const chosen = paths.map((path) => readFieldPath(path) ?? [])
  const marks = chosen.map((path) => `${JSON.stringify(path.at(-1) ?? '')}:`)
  const known = new WeakMap<Buffer, string>()
  return (body) => {
    const before = known.get(body)
    if (before !== undefined) return before
    // Most messages have none of the fields, and this is found out without parsing them.
    const values = marks.some((mark) => body.includes(mark)) ? hashesIn(body, chosen, hash) : ''
    known.set(body, values)
    return values
  }
}

function hashesIn(body: Buffer, paths: readonly (readonly string[])[], hash: KeyedHash): string {
  const text = body.toString()
  const values = new Set<string>()
  const take = (value: string | number | boolean): boolean => {
    const spelled = String(value)
    const isIndexed = typeof value !== 'boolean' && spelled !== ''
    if (isIndexed && Buffer.byteLength(spelled) <= indexedLimits.valueBytes) values.add(spelled)
    return values.size >= indexedLimits.values
  }
  for (const path of paths) if (someValueIn(text, path, take)) break
  return [...values].map((value) => hash(Buffer.from(value))).join('')
}
