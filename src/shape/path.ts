// Paths as Segment's mapping-kit reads them: `$.properties.products[0].sku`. A `[` begins a step only before
// a digit or a quote, so that a key such as `a[b]` is one step.

const separator = /\[(?=["'\d])|\.|(?<=["'\d])\]+/g

/** Returns the steps of a path. A path without steps is the whole message. */
export function stepsOf(path: string): readonly string[] {
  return path
    .replace('$.', '')
    .split(separator)
    .filter((step) => step !== '')
    .map((step) => step.replaceAll(/['"]/g, ''))
}

/**
 * Returns the value at a path, or `undefined`. As in mapping-kit, a path through a value that is false, 0, ''
 * or null ends with this value. Inherited properties are never read.
 */
export function valueAt(root: unknown, steps: readonly string[]): unknown {
  let value = root
  for (const step of steps) {
    if (!isTruthy(value)) return value
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = Reflect.get(value, step)
  }
  return value
}

function isTruthy(value: unknown): boolean {
  return Boolean(value)
}
