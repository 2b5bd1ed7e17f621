import { parentPort, workerData, type MessagePort } from 'node:worker_threads'
import type { Destination, Source } from '../catalog.ts'
import type { Path } from '../fault.ts'
import {
  parseCatalog,
  parseCatalogData,
  type ParsedCatalog,
  type ParseOptions,
  readUncheckedCatalog,
} from '../parse.ts'
import { readYaml, type TextPlace } from '../yaml.ts'

/** The input that `reader.ts` passes to the thread. */
export type ReaderInput = ParseOptions & {
  /** The text of a catalog, or what a text would be read as, with the version that it gets. */
  readonly catalog: { readonly text: string } | { readonly data: unknown; readonly version: string }
}

/** The text of a file of a folder, which is read as plain data that isn't checked. */
export type UncheckedInput = { readonly unchecked: string; readonly file: string }
export type Unchecked = ReturnType<typeof readUncheckedCatalog>

/** A text, and paths whose places in the text are sought. */
export type PlacesInput = { readonly placesIn: string; readonly paths: readonly Path[] }
export type Places = readonly (TextPlace | undefined)[]

export function readUnchecked({ unchecked, file }: UncheckedInput): Unchecked {
  const read = readUncheckedCatalog(unchecked, file)
  // What reads the places isn't data.
  return read.ok ? { ok: true, value: read.value } : read
}

export function findPlaces({ placesIn, paths }: PlacesInput): Places {
  const read = readYaml(placesIn)
  return paths.map((path) => (read.ok ? read.place(path, 'value') : undefined))
}

/** Parses an input in this thread. */
export function parseInput({ catalog, ...options }: ReaderInput): ParsedCatalog {
  return 'text' in catalog
    ? parseCatalog(catalog.text, options)
    : parseCatalogData(catalog.data, { ...options, version: catalog.version })
}

/**
 * A message of the thread: all faults, or a part of the catalog. The last part has the version. Before each
 * further part, the thread waits for a message, so that the receiver isn't held up by many parts at once.
 */
export type ReaderOutput =
  | Omit<Extract<ParsedCatalog, { ok: false }>, 'ok'>
  | (Omit<Extract<ParsedCatalog, { ok: true }>, 'ok' | 'catalog'> & {
      readonly sources: readonly Source[]
      readonly destinations: readonly Destination[]
      readonly version: string | undefined
    })

/**
 * The URL of this module, with which it can be started as a thread. The URL ends in .ts when the sources are
 * run, and in .js after a build.
 */
export const readerThreadUrl = new URL(import.meta.url)

/**
 * Limit on the sources, and also on the destinations, in one part of the catalog. The receiver takes about
 * 5 ms for a part of this size.
 */
const partSize = 500

// This code runs only if the module was started as a thread. In other cases, the module is imported for its
// URL.
if (parentPort !== null && isInput(workerData, 'unchecked')) post(parentPort, readUnchecked(workerData))
else if (parentPort !== null && isInput(workerData, 'placesIn')) post(parentPort, findPlaces(workerData))
else if (isReaderInput(workerData)) {
  const parsed = parseInput(workerData)
  if (parentPort !== null) {
    if (parsed.ok) postParts(parsed, parentPort)
    else post(parentPort, { faults: parsed.faults, kept: parsed.kept })
  }
}

function postParts(
  { catalog, expected, kept, variables }: Extract<ParsedCatalog, { ok: true }>,
  port: MessagePort,
): void {
  const sources = [...catalog.sources.values()]
  const destinations = [...catalog.destinations.values()]
  let from = 0
  const postPart = (): void => {
    const until = from + partSize
    post(port, {
      sources: sources.slice(from, until),
      destinations: destinations.slice(from, until),
      version: until >= Math.max(sources.length, destinations.length) ? catalog.version : undefined,
      expected,
      kept,
      variables,
    })
    from = until
  }
  port.on('message', postPart)
  postPart()
}

function post(port: MessagePort, output: ReaderOutput | Unchecked | Places): void {
  port.postMessage(output)
}

function isReaderInput(value: unknown): value is ReaderInput {
  return typeof value === 'object' && value !== null && 'catalog' in value && 'variables' in value
}

function isInput(value: unknown, key: 'unchecked'): value is UncheckedInput
function isInput(value: unknown, key: 'placesIn'): value is PlacesInput
function isInput(value: unknown, key: string): boolean {
  return typeof value === 'object' && value !== null && key in value
}
