/**
 * Reads JSON text that a stranger wrote. The same as JSON.parse, which in the V8 of Node 24 and 26 can misread a
 * key that is spelled with an escape: once any object with a key `\` was parsed, a key spelled `"\n"` in its place
 * comes out as `\` (nodejs/node#63785). One producer's keys would so change those of another.
 *
 * A misread key is the beginning of its own spelling, with the backslash: where no key holds one, all is well.
 */
export function parseJson(text: string): { ok: true; value: unknown } | { ok: false } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { ok: false }
  }
  const isSuspect =
    text.includes('\\') && escapedKey.test(text) && someMember(value, (key) => key.includes('\\'))
  return { ok: true, value: isSuspect ? readAgain(text) : value }
}

/**
 * Whether any member of any depth is sought; members of arrays have the key ''. Walks with a list instead of the
 * stack, which nesting could exhaust.
 */
export function someMember(root: unknown, isSought: (key: string, value: unknown) => boolean): boolean {
  const pending = [root]
  while (pending.length > 0) {
    const next = pending.pop()
    if (typeof next !== 'object' || next === null) continue
    const isArray = Array.isArray(next)
    for (const [key, value] of Object.entries(next)) {
      if (isSought(isArray ? '' : key, value)) return true
      if (typeof value === 'object') pending.push(value)
    }
  }
  return false
}

/** The last escape of a string that a colon follows. It may find more than keys, and misses none. */
const escapedKey = /\.[^"\]*"\s*:/s

const token = /"(?:[^"\\]|\\.)*"|[{}[\]]|[^\s{}[\]":,]+/gs

type Container = { items: unknown[] } | { fields: object; key: string | undefined }

/** Reads a text that JSON.parse has accepted, without its memory of keys. Keeps a list of open containers, so depth is no problem. */
function readAgain(text: string): unknown {
  const open: Container[] = []
  let top: Container = { items: [] }
  const root = top.items
  for (const [piece] of text.matchAll(token)) {
    if (piece === '{' || piece === '[') {
      open.push(top)
      top = piece === '{' ? { fields: {}, key: undefined } : { items: [] }
    } else if (piece === '}' || piece === ']') {
      const closed = 'items' in top ? top.items : top.fields
      top = open.pop() ?? top
      put(top, closed)
    } else if ('fields' in top && top.key === undefined) {
      top.key = scalar(piece) as string
    } else {
      put(top, scalar(piece))
    }
  }
  return root[0]
}

/** A field is defined, not assigned: `__proto__` is a field like any other. */
function put(container: Container, value: unknown): void {
  if ('items' in container) {
    container.items.push(value)
    return
  }
  const field = { value, writable: true, enumerable: true, configurable: true }
  Object.defineProperty(container.fields, container.key ?? '', field)
  container.key = undefined
}

/** JSON.parse is right about anything that has no keys. */
function scalar(piece: string): unknown {
  return JSON.parse(piece)
}
