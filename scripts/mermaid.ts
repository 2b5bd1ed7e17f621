import { readFileSync } from 'node:fs'
import { runInThisContext } from 'node:vm'
import { parseHTML } from 'linkedom'

type Mermaid = { parse(text: string): Promise<unknown> }

/**
 * Loads the parser of Mermaid. The parser needs the document of a browser, which linkedom imitates well
 * enough.
 */
function loadMermaid(): Mermaid {
  const { window, document } = parseHTML('<!doctype html><html><body></body></html>')
  Object.assign(globalThis, { window, document })
  // Mermaid's file is a script for browsers, and declares global variables.
  runInThisContext(readFileSync(new URL(import.meta.resolve('@mermaid-js/tiny')), 'utf8'))
  const loaded: unknown = Reflect.get(globalThis, 'mermaid')
  if (!isMermaid(loaded)) throw new Error('@mermaid-js/tiny has left no parser')
  return loaded
}

function isMermaid(value: unknown): value is Mermaid {
  return typeof value === 'object' && value !== null && 'parse' in value && typeof value.parse === 'function'
}

let parser: Mermaid | undefined

/**
 * Resolves to the reason why Mermaid can't read a diagram, in one line. Resolves to `undefined` if Mermaid
 * can read it.
 */
export async function diagramFault(text: string): Promise<string | undefined> {
  parser ??= loadMermaid()
  return parser.parse(text).then(
    () => undefined,
    (error: unknown) => String(error instanceof Error ? error.message : error).replaceAll(/\s+/g, ' '),
  )
}
