import { createHash } from 'node:crypto'
import { Breath } from '../../async/breath.ts'
import { type CatalogList, catalogLists } from '../expected.ts'
import { type Fault, faultOf, maxFaults, type Path } from '../fault.ts'
import type { ParsedCatalog } from '../parse.ts'
import { isRecord, listOf, recordOf } from '../plain-data.ts'
import type { Variables } from '../variables.ts'
import type { TextFile } from './folder-files.ts'
import { type readCatalogData, readCatalogPart, readPlaces } from './reader.ts'

// A folder of small files. Each has a part of the catalog: one destination, or lists as a catalog file has
// them. A file with faults refuses itself alone: what it said before stays in force. A start has nothing to
// keep. It pauses the destinations of a faulty file, so that their messages wait and none is lost.

/** What a file has. */
type Part = {
  readonly name: string
  readonly text: string
  /** True: the file is one destination. */
  readonly isSingle: boolean
  readonly entries: Readonly<Record<CatalogList, readonly unknown[]>>
  /** The counts of entries that the whole folder has. */
  readonly expect: unknown
}

export type FolderOptions = {
  readonly path: string
  readonly variables: Variables
  readonly allowAddresses: readonly string[] | undefined
  readonly readData: typeof readCatalogData
}

/** What a version of the folder makes. `left`: the faults of the files that are left out of it. */
export type ReadFolder =
  | (Extract<ParsedCatalog, { ok: true }> & {
      readonly left: readonly Fault[]
      readonly inForce: InForce
    })
  | { readonly ok: false; readonly faults: readonly Fault[] }

/** What is in force: the files' parts by name, and the variables that they are filled with. */
type InForce = { readonly parts: ReadonlyMap<string, Part>; readonly variables: Variables }

const keys: ReadonlySet<string> = new Set(['sources', 'destinations', 'expect'])
/** Receives nothing, because its destination is paused. Each destination has a URL. */
const noUrl = 'https://held.invalid/'

/** Reads the files of a folder, and remembers what each has said that is in force. */
export class CatalogFolder {
  #inForce: InForce = { parts: new Map(), variables: {} }
  /** What files have, so that only those that were edited are read again. */
  #known: ReadonlyMap<string, Part> = new Map()
  readonly #keepsStates: boolean

  /** `keepsStates`: at the first reading, a faulty destination isn't paused. Nothing may be sent to it. */
  constructor({ keepsStates = false }: { readonly keepsStates?: boolean } = {}) {
    this.#keepsStates = keepsStates
  }

  /** Says that a version of the folder is in force. */
  keep(inForce: InForce): void {
    this.#inForce = inForce
  }

  async read(files: readonly TextFile[], options: FolderOptions): Promise<ReadFolder> {
    const { parts: given, faults } = await this.#partsOf(files, options.path)
    const { parts: former } = this.#inForce
    const isFirst = former.size === 0
    // Nobody knows what such a file would say.
    if (isFirst && faults.length > 0) return { ok: false, faults }
    const left = new Map<string, readonly Fault[]>(Map.groupBy(faults, ({ file }) => file))
    const chosen = new Map<string, Part>()
    for (const { name } of files) {
      const part = given.get(name) ?? former.get(name)
      if (part !== undefined) chosen.set(name, part)
    }
    for (;;) {
      const read = await this.#whole(chosen, options, isFirst ? undefined : this.#inForce.variables)
      const { kept = [] } = read
      const all = (more: readonly Fault[]): readonly Fault[] => [
        ...new Set([...left.values(), kept, more].flat()),
      ]
      if (read.ok) {
        const { variables = options.variables } = read
        return { ...read, left: all([]), inForce: { parts: chosen, variables } }
      }
      for (const [file, some] of Map.groupBy(read.faults, (fault) => fault.file)) {
        const name = nameIn(file, options.path)
        const part = chosen.get(name)
        const other = part && (isFirst ? held(part, some, this.#keepsStates) : former.get(name))
        const canMend = part !== other && (!isFirst || other !== undefined)
        // What is in force isn't at fault, so another file is. Which one, only people can say.
        if (part === undefined || left.has(file) || !canMend)
          return { ok: false, faults: all(read.faults).slice(0, maxFaults) }
        left.set(file, some)
        if (other === undefined) chosen.delete(name)
        else chosen.set(name, other)
      }
    }
  }

  /** Reads the files that were edited. */
  async #partsOf(
    files: readonly TextFile[],
    path: string,
  ): Promise<{ readonly parts: ReadonlyMap<string, Part>; readonly faults: readonly Fault[] }> {
    const parts = new Map<string, Part>()
    const faults: Fault[] = []
    const breath = new Breath()
    for (const { name, text, fault } of files) {
      const known = this.#known.get(name)
      const part = known?.text === text ? known : await partOf(name, text, path)
      if (fault !== undefined) faults.push({ ...fault, file: fileOf(path, name) })
      else if ('faults' in part) faults.push(...part.faults)
      else parts.set(name, part)
      await breath.take()
    }
    this.#known = parts
    return { parts, faults }
  }

  /** Makes the catalog of parts. Each fault names its file, and its place in it. */
  async #whole(
    parts: ReadonlyMap<string, Part>,
    { path, variables, allowAddresses, readData }: FolderOptions,
    formerVariables: Variables | undefined,
  ): Promise<ParsedCatalog> {
    // Of two entries with the same id, the later one is at fault. That is the one that was edited.
    const isNew = (part: Part): boolean => this.#inForce.parts.get(part.name) !== part
    const inOrder = [...parts.values()].toSorted((one, other) => Number(isNew(one)) - Number(isNew(other)))
    const owners: Record<CatalogList, { part: Part; index: number }[]> = { sources: [], destinations: [] }
    for (const part of inOrder)
      for (const list of catalogLists)
        for (const index of part.entries[list].keys()) owners[list].push({ part, index })
    const entriesOf = (list: CatalogList): readonly unknown[] =>
      owners[list].map(({ part, index }) => part.entries[list][index])
    const counting = inOrder.find(({ expect }) => expect !== undefined)
    const data = {
      sources: entriesOf('sources'),
      destinations: entriesOf('destinations'),
      ...(counting && { expect: counting.expect }),
    }
    const characters = inOrder.reduce((sum, { text }) => sum + text.length, 0)
    const version = versionOf(parts)
    const from = { file: path, version, variables, formerVariables, allowAddresses, characters }
    const read = await readData(data, from)
    const where = { owners, counting, path }
    const kept = read.kept && (await inTheirFiles(read.kept, where))
    return read.ok ? { ...read, kept } : { ok: false, faults: await inTheirFiles(read.faults, where), kept }
  }
}

/** Reads a file. */
async function partOf(
  name: string,
  text: string,
  path: string,
): Promise<Part | { readonly faults: readonly Fault[] }> {
  const file = fileOf(path, name)
  const read = await readCatalogPart({ unchecked: text, file })
  if (!read.ok) return read
  const refuse = (problem: string, advice: string) => ({ faults: [faultOf(file, problem, advice)] })
  const { value } = read
  if (!isRecord(value) || Object.keys(value).length === 0)
    return refuse('is no part of a catalog', 'write one destination, or sources: or destinations:')
  const isSingle = 'hooks' in value || 'id' in value
  if (isSingle)
    return { name, text, isSingle, entries: { sources: [], destinations: [value] }, expect: undefined }
  const unknown = Object.keys(value).find((key) => !keys.has(key))
  if (unknown !== undefined)
    return refuse('has a key that is unknown here', `write one destination, or ${[...keys].join(', ')}`)
  for (const list of catalogLists)
    if (value[list] !== undefined && !Array.isArray(value[list]))
      return refuse(`${list} is no list`, `begin each of the ${list} with a dash`)
  const entries = { sources: listOf(value['sources']), destinations: listOf(value['destinations']) }
  return { name, text, isSingle, entries, expect: value['expect'] }
}

/**
 * Returns a part whose faulty destinations are paused: they keep what decides which messages they get, and
 * wait for what they lack. Returns `undefined` if a source is at fault, because clients send its keys.
 */
function held(part: Part, faults: readonly Fault[], keepsStates: boolean): Part | undefined {
  const indexes = faults.map(({ path }) =>
    part.isSingle ? 0 : Number(/^destinations\[(\d+)\]/.exec(path)?.[1]),
  )
  if (indexes.some((index) => !Number.isInteger(index))) return undefined
  const faulty = new Set(indexes)
  const destinations = part.entries.destinations.map((entry, index) => {
    if (!faulty.has(index)) return entry
    const { id, name, sources, filter, labels, state } = recordOf(entry)
    const keepsState = state === 'off' || (keepsStates && (state === undefined || state === 'on'))
    const kept = { id, name, sources, filter, labels, state: keepsState ? state : 'paused' }
    const given = Object.entries(kept).filter(([, value]) => value !== undefined)
    return { ...Object.fromEntries(given), hooks: [{ url: noUrl }] }
  })
  return { ...part, entries: { ...part.entries, destinations } }
}

/** What says in which file a fault of the whole is. */
type Where = {
  readonly owners: Readonly<Record<CatalogList, readonly { readonly part: Part; readonly index: number }[]>>
  /** The part with the counts that the whole folder has. */
  readonly counting: Part | undefined
  readonly path: string
}

/** A fault with its file, and the part whose text has its place. */
type InFile = { readonly fault: Fault; readonly part: Part | undefined }

/**
 * Says in which files and where faults of the whole are. Each text is read once, however many faults it has.
 */
async function inTheirFiles(faults: readonly Fault[], where: Where): Promise<readonly Fault[]> {
  const all = faults.map((fault) => inItsFile(fault, where))
  const placed = new Map<Fault, Fault>()
  const breath = new Breath()
  for (const [part, some] of Map.groupBy(all, (one) => one.part)) {
    if (part === undefined) continue
    const paths = some.map(({ fault }) => stepsOf(fault.path))
    const places = await readPlaces({ placesIn: part.text, paths })
    for (const [at, { fault }] of some.entries()) {
      const { line, column } = places[at] ?? {}
      placed.set(fault, { ...fault, line, column })
    }
    await breath.take()
  }
  return all.map(({ fault }) => placed.get(fault) ?? fault)
}

function inItsFile(fault: Fault, { owners, counting, path }: Where): InFile {
  const match = /^(sources|destinations)\[(\d+)\]\.?(.*)$/.exec(fault.path)
  if (match === null) {
    const isOfCount = counting !== undefined && fault.path.startsWith('expect')
    return { fault: isOfCount ? { ...fault, file: fileOf(path, counting.name) } : fault, part: undefined }
  }
  const [, list, at, rest = ''] = match
  const owner = owners[list === 'sources' ? 'sources' : 'destinations'][Number(at)]
  if (owner === undefined) return { fault, part: undefined }
  const { part, index } = owner
  const own = part.isSingle
    ? rest
    : `${list}[${index}]${rest === '' || rest.startsWith('[') ? '' : '.'}${rest}`
  return { fault: { ...fault, file: fileOf(path, part.name), path: own }, part }
}

/** Returns the steps of a path in words. */
function stepsOf(path: string): Path {
  // A step that may have a secret is the last one.
  const steps = path.split('["')[0]?.matchAll(/\[(\d+)\]|([A-Za-z_$][\w$-]*)/g) ?? []
  return [...steps].map(([, index, key = '']) => (index === undefined ? key : Number(index)))
}

function fileOf(path: string, name: string): string {
  return `${path.replace(/\/$/, '')}/${name}`
}

function nameIn(file: string, path: string): string {
  return file.slice(fileOf(path, '').length)
}

/** Two processes that use the same texts have the same version. */
function versionOf(parts: ReadonlyMap<string, Part>): string {
  const hash = createHash('sha256')
  for (const name of [...parts.keys()].toSorted()) {
    const { text = '', entries } = parts.get(name) ?? {}
    hash.update(JSON.stringify([name, text, entries?.destinations]))
  }
  return hash.digest('hex').slice(0, 12)
}
