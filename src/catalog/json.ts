import { getLocation, parse, visit } from 'jsonc-parser'
import { idAt } from './entry-id.ts'
import { withOwnKeys } from '../message/json/json.ts'
import { formatPath } from './fault.ts'
import type { SyntaxFault } from './yaml.ts'

/**
 * Returns true if a text looks like JSON: its first character is `{`. Such a text may also be a YAML mapping
 * in braces.
 */
export function looksLikeJson(text: string): boolean {
  return /^\s*\{/.test(text)
}

/**
 * Reads a JSON text as plain data, some 40 times as fast as `readYaml` does. A key that occurs twice in an
 * object is a fault, as it is in YAML. Returns only the first fault. A fault never quotes the text, because
 * the text may be a secret. Never throws.
 */
export function readJson(
  text: string,
): { ok: true; value: unknown } | { ok: false; faults: readonly SyntaxFault[] } {
  try {
    const fault = firstFault(text)
    return fault === undefined
      ? { ok: true, value: withOwnKeys(text, JSON.parse(text)) }
      : { ok: false, faults: [fault] }
  } catch (error) {
    // The search for faults runs out of stack in a text that is nested too deeply. `JSON.parse` could also
    // throw, for a text in which the search finds no fault. No such text is known.
    const what = error instanceof RangeError ? tooDeep : notJson
    return { ok: false, faults: [{ line: 1, column: 1, ...what }] }
  }
}

const notJson = {
  problem: 'is not valid JSON here',
  advice: 'check this value and the character before it; comments and trailing commas are not allowed',
}
const repeatedKey = { problem: 'is a key that was written before', advice: 'keep one of the two' }
const tooDeep = { problem: 'is nested too deep', advice: 'write a catalog, which has few levels' }

function firstFault(text: string): SyntaxFault | undefined {
  const keysOf: Set<string>[] = []
  let fault: SyntaxFault | undefined
  visit(
    text,
    {
      onObjectBegin: () => void keysOf.push(new Set()),
      onObjectEnd: () => void keysOf.pop(),
      onObjectProperty(key, offset) {
        if (keysOf.at(-1)?.has(key)) fault ??= { ...placeAt(text, offset), ...repeatedKey }
        keysOf.at(-1)?.add(key)
      },
      onError(_error, offset) {
        fault ??= { ...placeAt(text, offset), ...notJson }
      },
    },
    { disallowComments: true },
  )
  return fault
}

type JsonPlace = { line: number; column: number; path: string; id?: string }

/**
 * Returns the path of the value at this place, and the id of its source or destination as far as it is known
 * before the place. A file may have one line only, and then its column says little.
 */
function entryAt(text: string, offset: number): Pick<JsonPlace, 'path' | 'id'> {
  const path = getLocation(text, offset).path.filter((step) => step !== '')
  const id = idAt(parse(text.slice(0, offset)), path)
  return { path: formatPath(path), ...(id !== undefined && { id }) }
}

function placeAt(text: string, offset: number): JsonPlace {
  const before = text.slice(0, offset)
  const place = { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') }
  return { ...place, ...entryAt(text, offset) }
}
