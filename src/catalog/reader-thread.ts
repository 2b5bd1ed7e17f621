import { parentPort, workerData } from 'node:worker_threads'
import { parseCatalog } from './parse.ts'
import type { ReaderInput } from './reader.ts'

// The other end of `reader.ts`, which is the only one to start it.
const input: ReaderInput = workerData
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port, not a window
parentPort?.postMessage(parseCatalog(input.text, input))
