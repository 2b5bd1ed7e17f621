import { parentPort, workerData } from 'node:worker_threads'
import { parseCatalog } from './parse.ts'
import type { Variables } from './variables.ts'

/** The input that `reader.ts` passes to the thread. The thread posts a `ParsedCatalog` back. */
export type ReaderInput = {
  catalogText: string
  file: string
  variables: Variables
  allowAddresses?: readonly string[] | undefined
}

/**
 * The URL of this module, for starting it as a thread. It ends in .ts in the sources and in .js after a
 * build.
 */
export const readerThreadUrl = new URL(import.meta.url)

// This part runs only if the module was started as a thread. Elsewhere the module is imported for its URL.
if (isReaderInput(workerData)) {
  const { catalogText, file, variables, allowAddresses } = workerData
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port, not a window
  parentPort?.postMessage(parseCatalog(catalogText, { file, variables, allowAddresses }))
}

function isReaderInput(value: unknown): value is ReaderInput {
  return typeof value === 'object' && value !== null && 'catalogText' in value
}
