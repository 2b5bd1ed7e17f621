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
  const names: string[] = []
  let rest = text
  for (let part = nextName(rest); part !== undefined; part = nextName(rest)) {
    names.push(part.name)
    rest = rest.slice(part.length)
  }
  if (names.length === 0 || !rest.startsWith('='))
    throw new WrongUseError(
      `${JSON.stringify(text)} is no condition: write a field and its value, such as properties.orderId=4711.`,
    )
  return { path: names, value: rest.slice(1) }
}

const plainName = /^\.?([^.="[\]]+)/
const namedInBrackets = /^\[("(?:[^"\\]|\\.)*")\]/

function nextName(text: string): { name: string; length: number } | undefined {
  const plain = plainName.exec(text)
  if (plain?.[1] !== undefined) return { name: plain[1], length: plain[0].length }
  const [whole, quoted] = namedInBrackets.exec(text) ?? []
  if (whole === undefined || quoted === undefined) return undefined
  try {
    return { name: String(JSON.parse(quoted)), length: whole.length }
  } catch {
    return undefined
  }
}

/**
 * Returns true if a message meets the condition. A list on the way meets it if one of its items does.
 * Numbers and truth values are compared by how JSON writes them, so `4711` and `"4711"` are the same.
 */
export function meets(message: unknown, { path, value }: BodyCondition): boolean {
  return isAt(message, path, 0, value)
}

function isAt(node: unknown, path: readonly string[], at: number, value: string): boolean {
  if (Array.isArray(node)) return node.some((item) => isAt(item, path, at, value))
  const name = path[at]
  if (name === undefined) return isText(node) && String(node) === value
  if (typeof node !== 'object' || node === null || !Object.hasOwn(node, name)) return false
  return isAt(Reflect.get(node, name), path, at + 1, value)
}

function isText(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}
