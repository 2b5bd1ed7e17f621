import { someValueAt, takeFieldPath } from '../../message/field-path.ts'
import { WrongUseError } from '../../roles/start/start-error.ts'

/** A condition on the body of a message. */
export type BodyCondition = {
  /** The names of the fields on the way to the value, such as `['properties', 'orderId']`. */
  readonly path: readonly string[]
  /** What the value has to be, as text. */
  readonly value: string
}

/**
 * Reads a condition such as `properties.orderId=4711`. A name that has a dot is written in brackets:
 * `properties["order.id"]=4711`.
 */
export function readCondition(text: string): BodyCondition {
  const { names, rest } = takeFieldPath(text)
  if (names.length === 0 || !rest.startsWith('='))
    throw new WrongUseError(
      `${JSON.stringify(text)} is no condition: write a field and its value, such as properties.orderId=4711.`,
    )
  return { path: names, value: rest.slice(1) }
}

/**
 * Returns true if a message meets the condition. A list on the way meets it if one of its items does.
 * Numbers and truth values are compared by how JSON writes them, so `4711` and `"4711"` are the same.
 */
export function meets(message: unknown, { path, value }: BodyCondition): boolean {
  return someValueAt(message, path, (found) => String(found) === value)
}
