/** Returns the value of a text in JSON. `undefined`: it is no JSON. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Writes JSON over several lines. What is no JSON stays as it is. */
export function prettyJson(text: string): string {
  const value = readJson(text)
  return value === undefined ? text : JSON.stringify(value, null, 2)
}
