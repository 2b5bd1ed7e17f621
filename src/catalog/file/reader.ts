import { Worker } from 'node:worker_threads'
import { createCatalog, type Destination, type Source } from '../catalog.ts'
import type { ParsedCatalog, ParseOptions } from '../parse.ts'
import {
  findPlaces,
  parseInput,
  type Places,
  type PlacesInput,
  readerThreadUrl,
  type ReaderInput,
  type ReaderOutput,
  readUnchecked,
  type Unchecked,
  type UncheckedInput,
} from './reader-thread.ts'

/**
 * Texts of this many characters or more are read in a separate thread, so that they don't hold up deliveries.
 * The YAML parser takes about 1.2 ms for each KiB.
 */
const threadFromCharacters = 64 * 1024
/**
 * The longest time to read a text: `timeoutMs`, and more for each character. An idle core needs only a
 * fraction of this time.
 */
const timeoutMs = 60_000
const timeoutMsPerCharacter = 0.001

/**
 * Calls `parseCatalog` without blocking the event loop for long. Rejects if the thread fails or takes too
 * long. It may take a minute, and in addition a second for each million characters.
 */
export function readCatalogText(text: string, options: ParseOptions): Promise<ParsedCatalog> {
  return read({ catalog: { text }, ...options }, text.length)
}

/** Does the same for a catalog that is plain data. `characters`: about as many as its text would have. */
export function readCatalogData(
  data: unknown,
  { version, characters, ...options }: ParseOptions & { version: string; characters: number },
): Promise<ParsedCatalog> {
  return read({ catalog: { data, version }, ...options }, characters)
}

/** Reads the text of a file of a folder, without blocking the event loop for long. */
export function readCatalogPart(input: UncheckedInput): Promise<Unchecked> {
  const { length } = input.unchecked
  if (length < threadFromCharacters) return Promise.resolve(readUnchecked(input))
  return inThread<Unchecked>(input, length, (thread, resolve) => thread.once('message', resolve))
}

/** Finds places in a text, without blocking the event loop for long. */
export function readPlaces(input: PlacesInput): Promise<Places> {
  const { length } = input.placesIn
  if (length < threadFromCharacters) return Promise.resolve(findPlaces(input))
  return inThread<Places>(input, length, (thread, resolve) => thread.once('message', resolve))
}

async function read(input: ReaderInput, characters: number): Promise<ParsedCatalog> {
  if (characters < threadFromCharacters) return parseInput(input)
  return inThread(input, characters, receiveParts)
}

/** Passes an input to a new thread. `receive`: receives what the thread posts, and ends with a result. */
async function inThread<T>(
  input: ReaderInput | UncheckedInput | PlacesInput,
  characters: number,
  receive: (thread: Worker, onResult: (result: T) => void) => void,
): Promise<T> {
  const thread = new Worker(readerThreadUrl, { workerData: input })
  try {
    return await new Promise<T>((resolve, reject) => {
      const limitMs = Math.ceil(timeoutMs + characters * timeoutMsPerCharacter)
      const deadline = setTimeout(() => {
        reject(new Error(`reading the catalog took more than ${limitMs} ms`))
      }, limitMs)
      const finish = (act: () => void) => {
        clearTimeout(deadline)
        act()
      }
      receive(thread, (result) => finish(() => resolve(result)))
      thread.once('error', (error) => finish(() => reject(error)))
      thread.once('exit', (code) =>
        finish(() => reject(new Error(`the catalog's reader ended with ${code}`))),
      )
    })
  } finally {
    await thread.terminate()
  }
}

/**
 * Puts a catalog together from the parts that the thread posts. Each part is received in its own turn of the
 * event loop.
 */
function receiveParts(thread: Worker, onParsed: (parsed: ParsedCatalog) => void): void {
  const sources: Source[] = []
  const destinations: Destination[] = []
  thread.on('message', (output: ReaderOutput) => {
    if ('faults' in output) {
      onParsed({ ok: false, ...output })
      return
    }
    const { version, sources: someSources, destinations: someDestinations, ...more } = output
    sources.push(...someSources)
    destinations.push(...someDestinations)
    if (version === undefined) setImmediate(() => askForNextPart(thread))
    else onParsed({ ok: true, catalog: createCatalog(sources, destinations, version), ...more })
  })
}

function askForNextPart(thread: Worker): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  thread.postMessage('next part')
}
