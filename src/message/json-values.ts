/** Returns true if a value is a text that isn't empty. */
export function isFilled(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Returns true if a value is an exact whole number of 0 or more. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
