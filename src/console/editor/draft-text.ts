// Between what a form has, which is text, and what a destination has.

export function words(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '')
}

export function lines(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

/** Splits `key=value`. Without the separator, the value is empty. */
export function pairOf(line: string, separator: string): readonly [string, string] {
  const at = line.indexOf(separator)
  return at < 0 ? [line, ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()]
}

export function pairs(values: Readonly<Record<string, string>>, separator: string): string {
  return Object.entries(values)
    .map(([key, value]) => `${key}${separator}${value}`)
    .join('\n')
}

/** Returns the number, or the text as it is, which the server then refuses with its reason. */
export function numberOf(text: string): number | string {
  const number = Number(text)
  return Number.isNaN(number) ? text : number
}

export function textOf(text: string): string | undefined {
  return text.trim() === '' ? undefined : text.trim()
}

export function ifAny<T extends object>(value: T): T | undefined {
  return Object.keys(value).length === 0 ? undefined : value
}

export function without(value: object, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)))
}

/** Returns a value without the fields that are `undefined`. */
export function given(value: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined))
}

export function objectAt(value: object, key: string): Record<string, unknown> {
  const found: unknown = Reflect.get(value, key)
  return typeof found === 'object' && found !== null ? { ...found } : {}
}

export function listAt(value: object, key: string): readonly string[] {
  const found: unknown = Reflect.get(value, key)
  return Array.isArray(found) ? found.map(String) : []
}

export function textAt(value: object, key: string): string {
  const found: unknown = Reflect.get(value, key)
  return typeof found === 'string' || typeof found === 'number' ? String(found) : ''
}
