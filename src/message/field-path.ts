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
