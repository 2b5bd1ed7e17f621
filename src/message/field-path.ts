import { parseJson } from './json/json.ts'
import { eachMember, endOfValue } from './json/json-walk.ts'

/**
 * Reads the path of a field, such as `properties.orderId`, at the beginning of a text. A name that has a dot
 * is written in brackets: `properties["order.id"]`. `rest`: what follows the path.
 */
export function takeFieldPath(text: string): { readonly names: readonly string[]; readonly rest: string } {
  const names: string[] = []
  let rest = text
  for (let part = nextName(rest); part !== undefined; part = nextName(rest)) {
    names.push(part.name)
    rest = rest.slice(part.length)
  }
  return { names, rest }
}

/** Reads a text that is the path of a field and nothing else. Returns `undefined` if it isn't one. */
export function readFieldPath(text: string): readonly string[] | undefined {
  const { names, rest } = takeFieldPath(text)
  return names.length > 0 && rest === '' && !text.startsWith('.') ? names : undefined
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
 * Calls `take` with each plain value at a path: text, number or truth value. A list on the way stands for all
 * of its items. Ends and returns true once `take` returns true.
 */
export function someValueAt(
  node: unknown,
  path: readonly string[],
  take: (value: string | number | boolean) => boolean,
  at = 0,
): boolean {
  if (Array.isArray(node)) return node.some((item) => someValueAt(item, path, take, at))
  const name = path[at]
  if (name === undefined) return isPlain(node) && take(node)
  if (typeof node !== 'object' || node === null || !Object.hasOwn(node, name)) return false
  return someValueAt(Reflect.get(node, name), path, take, at + 1)
}

function isPlain(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

const openBracket = 0x5b
const openBrace = 0x7b
const closeBracket = 0x5d
const comma = 0x2c

/**
 * Does the same as `someValueAt` with a message in canonical JSON. No value is made of what isn't at the
 * path, because that could cost many times as much: V8 makes a hidden class for each new order of keys.
 */
export function someValueIn(
  text: string,
  path: readonly string[],
  take: (value: string | number | boolean) => boolean,
): boolean {
  const keys = path.map((name) => JSON.stringify(name))
  return someFrom(text, 0, { keys, take, level: 0 })
}

type Walk = {
  readonly keys: readonly string[]
  readonly take: (value: string | number | boolean) => boolean
  readonly level: number
}

/** Looks at the value that begins at `start`, and at all items of lists in it. */
function someFrom(text: string, start: number, walk: Walk): boolean {
  let open = 0
  for (let at = start; at < text.length;) {
    const character = text.charCodeAt(at)
    if (character === openBracket || character === closeBracket) {
      open += character === openBracket ? 1 : -1
      at++
    } else if (character === comma) at++
    else {
      if (character === openBrace ? someMember(text, at, walk) : isTaken(text, at, walk)) return true
      const end = endOfValue(text, at)
      if (end === at) return false
      at = end
    }
    if (open <= 0) return false
  }
  return false
}

function someMember(text: string, start: number, { keys, take, level }: Walk): boolean {
  const key = keys[level]
  let isOver = false
  if (key !== undefined)
    eachMember(text, start + 1, (keyStart, valueStart) => {
      if (valueStart - 1 - keyStart !== key.length || !text.startsWith(key, keyStart)) return false
      isOver = someFrom(text, valueStart, { keys, take, level: level + 1 })
      return true
    })
  return isOver
}

function isTaken(text: string, start: number, { keys, take, level }: Walk): boolean {
  if (level < keys.length) return false
  const read = parseJson(text.slice(start, endOfValue(text, start)))
  return read.ok && isPlain(read.value) && take(read.value)
}
