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
  const isSuspect = mayHaveEscapedKey(text) && someMember(value, (key) => key.includes('\\'))
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
    if (Array.isArray(next)) {
      for (const item of next) {
        if (isSought('', item)) return true
        if (typeof item === 'object') pending.push(item)
      }
    } else if (isRecord(next)) {
      for (const key of Object.keys(next)) {
        const value = next[key]
        if (isSought(key, value)) return true
        if (typeof value === 'object') pending.push(value)
      }
    }
  }
  return false
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** Whether a colon follows a string with an escape in it. Looks at escapes only, of which most texts have few. */
function mayHaveEscapedKey(text: string): boolean {
  let quote = -1
  for (let escape = text.indexOf('\\'); escape !== -1;) {
    const rest = escape + 2
    // A quote that is known to be ahead isn't looked for again: many escapes of a long string find the same one.
    if (quote < rest) quote = text.indexOf('"', rest)
    const next = text.indexOf('\\', rest)
    const isLastOfString = next === -1 || quote < next
    if (isLastOfString && isFollowedByColon(text, quote)) return true
    escape = next
  }
  return false
}

function isFollowedByColon(text: string, quote: number): boolean {
  let at = quote + 1
  while (at < text.length && ' \n\r\t'.includes(text.charAt(at))) at += 1
  return text[at] === ':'
}

type Container = { items: unknown[] } | { fields: object; key: string | undefined }

/**
 * Reads a text that JSON.parse has accepted, key by key. Keeps a list of the open containers: the stack could be
 * exhausted.
 */
function readAgain(text: string): unknown {
  const root: unknown[] = []
  const open: Container[] = []
  let top: Container = { items: root }
  let at = 0
  while (at < text.length) {
    const char = text.charAt(at)
    if (char === '{' || char === '[') {
      open.push(top)
      top = char === '{' ? { fields: {}, key: undefined } : { items: [] }
      at += 1
    } else if (char === '}' || char === ']') {
      const closed = 'items' in top ? top.items : top.fields
      top = open.pop() ?? { items: root }
      put(top, closed)
      at += 1
    } else if (between.has(char)) {
      at += 1
    } else {
      const end = char === '"' ? endOfString(text, at) : endOfLiteral(text, at)
      // JSON.parse is right about what has no keys.
      const value: unknown = JSON.parse(text.slice(at, end))
      if ('fields' in top && top.key === undefined) top.key = String(value)
      else put(top, value)
      at = end
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

const between = new Set(' \n\r\t,:')

function endOfString(text: string, start: number): number {
  let at = start + 1
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}

function endOfLiteral(text: string, start: number): number {
  let at = start
  while (at < text.length && !between.has(text.charAt(at)) && text[at] !== '}' && text[at] !== ']') at += 1
  return at
}
