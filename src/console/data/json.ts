import { withOwnKeys } from '../../message/json/json.ts'

/**
 * Does the same as JSON.parse. Browsers with V8 misread some names that are spelled with an escape, so a name
 * that one stranger has written could be shown as one of another stranger.
 */
export function parseText(text: string): unknown {
  return withOwnKeys(text, JSON.parse(text))
}

/** Returns the value of a text in JSON. `undefined`: it is no JSON. */
export function readJson(text: string): unknown {
  try {
    return parseText(text)
  } catch {
    return undefined
  }
}

/** Writes JSON over several lines. What is no JSON stays as it is. */
export function prettyJson(text: string): string {
  const value = readJson(text)
  return value === undefined ? text : JSON.stringify(value, null, 2)
}
