import { readFileSync } from 'node:fs'
import { runInThisContext } from 'node:vm'
import { parseHTML } from 'linkedom'

type Mermaid = { parse(text: string): Promise<unknown> }

/** Loads the parser of Mermaid. It wants a browser's document, of which linkedom gives what parsing needs. */
function loadMermaid(): Mermaid {
  const { window, document } = parseHTML('<!doctype html><html><body></body></html>')
  Object.assign(globalThis, { window, document })
  // It is a script for browsers: what it declares has to become global.
  runInThisContext(readFileSync(new URL(import.meta.resolve('@mermaid-js/tiny')), 'utf8'))
  const loaded: unknown = Reflect.get(globalThis, 'mermaid')
  if (!isMermaid(loaded)) throw new Error('@mermaid-js/tiny has left no parser')
  return loaded
}

function isMermaid(value: unknown): value is Mermaid {
  return typeof value === 'object' && value !== null && 'parse' in value && typeof value.parse === 'function'
}

let parser: Mermaid | undefined

/** Resolves to why Mermaid can't read a diagram, in one line; `undefined` where it can. */
export async function diagramFault(text: string): Promise<string | undefined> {
  parser ??= loadMermaid()
  return parser.parse(text).then(
    () => undefined,
    (error: unknown) => String(error instanceof Error ? error.message : error).replaceAll(/\s+/g, ' '),
  )
}
