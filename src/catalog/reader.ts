import { Worker } from 'node:worker_threads'
import { parseCatalog, type ParsedCatalog } from './parse.ts'
import type { Variables } from './variables.ts'

/** What the thread of `reader-thread.ts` is given. It posts a `ParsedCatalog` back. */
export type ReaderInput = { text: string; file: string; variables: Variables }

/** From here on a text is read in a thread: the YAML parser takes about 1.2 ms a KiB, and deliveries go on meanwhile. */
const threadFromCharacters = 64 * 1024
const timeoutMs = 30_000

/** `parseCatalog` without a long pause of the event loop. Rejects when the thread breaks or takes over 30 s. */
export async function readCatalogText(input: ReaderInput): Promise<ParsedCatalog> {
  if (input.text.length < threadFromCharacters) return parseCatalog(input.text, input)

  // The build writes .js beside .js, the sources run as .ts beside .ts.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const thread = new Worker(new URL(`./reader-thread.${extension}`, import.meta.url), { workerData: input })
  try {
    return await new Promise<ParsedCatalog>((resolve, reject) => {
      const deadline = setTimeout(() => {
        reject(new Error(`reading the catalog took more than ${timeoutMs} ms`))
      }, timeoutMs)
      const finish = (act: () => void) => {
        clearTimeout(deadline)
        act()
      }
      thread.once('message', (parsed: ParsedCatalog) => finish(() => resolve(parsed)))
      thread.once('error', (error) => finish(() => reject(error)))
      thread.once('exit', (code) =>
        finish(() => reject(new Error(`the catalog's reader ended with ${code}`))),
      )
    })
  } finally {
    await thread.terminate()
  }
}
