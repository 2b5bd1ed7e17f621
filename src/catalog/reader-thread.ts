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
 * The URL of this module, with which it can be started as a thread. The URL ends in .ts when the sources are
 * run, and in .js after a build.
 */
export const readerThreadUrl = new URL(import.meta.url)

// This code runs only if the module was started as a thread. In other cases, the module is imported for its
// URL.
if (isReaderInput(workerData)) {
  const { catalogText, file, variables, allowAddresses } = workerData
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port, not a window
  parentPort?.postMessage(parseCatalog(catalogText, { file, variables, allowAddresses }))
}

function isReaderInput(value: unknown): value is ReaderInput {
  return typeof value === 'object' && value !== null && 'catalogText' in value
}
