import { Breath } from '../async/breath.ts'
import { type Catalog, createCatalog, type Destination, type Source } from '../catalog/catalog.ts'
import { formatFaults } from '../catalog/fault.ts'
import { nextCatalog } from '../catalog/next-catalog.ts'
import { parseCatalogData } from '../catalog/parse.ts'
import { listOf } from '../catalog/plain-data.ts'
import type { Definition, Definitions } from './definitions.ts'
import type { CatalogLog, ChangeSet, StoredObject } from './log.ts'
import { isEntry, keyOf, type ObjectName } from './names.ts'

export type EntriesOptions = {
  readonly definitions: Definitions
  /** The name of the topic, for faults. */
  readonly topic: string
  /**
   * Called with an object that this process can't use, because a later version wrote it or its secrets can't
   * be opened. The earlier one stays in force.
   */
  readonly onUnusable: (name: ObjectName, problem: string) => void
}

/** Makes catalogs of the objects of the topic. It never judges a change: the writer has done that. */
export class Entries {
  readonly #options: EntriesOptions
  /** The objects that can't be used, by key, with the reason. */
  readonly #unusable = new Map<string, string>()

  constructor(options: EntriesOptions) {
    this.#options = options
  }

  get unusable(): ReadonlyMap<string, string> {
    return this.#unusable
  }

  /** Makes the catalog of all objects. */
  all(log: CatalogLog): Catalog {
    const sources = log.of('source').flatMap((object) => this.#source(object) ?? [])
    const destinations = log.of('destination').flatMap((object) => this.#destination(object) ?? [])
    return createCatalog(sources, destinations, versionOf(log.head?.revision ?? 0))
  }

  /**
   * Makes the next catalog. Entries that the change sets don't name keep their objects. Works in pieces, because
   * a burst of changes names thousands of objects.
   */
  async next(before: Catalog, sets: readonly ChangeSet[]): Promise<Catalog> {
    const version = versionOf(sets.at(-1)?.head.revision ?? 0)
    const sources = new Map<string, Source | undefined>()
    const destinations = new Map<string, Destination | undefined>()
    const breath = new Breath()
    for (const [key, { name, object }] of lastOf(sets)) {
      if (object === undefined) {
        this.#unusable.delete(key)
        if (name.kind === 'source') sources.set(name.id, undefined)
        else destinations.set(name.id, undefined)
      } else if (name.kind === 'source') setIf(sources, name.id, this.#source(object))
      else setIf(destinations, name.id, this.#destination(object))
      await breath.take()
    }
    return nextCatalog(before, { sources, destinations }, version)
  }

  #source(object: StoredObject): Source | undefined {
    return this.#built(object, (plain) => {
      const parsed = this.#parse({ sources: [plain], destinations: [] })
      return parsed.sources.get(object.id)
    })
  }

  #destination(object: StoredObject): Destination | undefined {
    return this.#built(object, (plain) => {
      const sources = listOf(plain['sources']).map((id) => ({ id }))
      return this.#parse({ sources, destinations: [plain] }).destinations.get(object.id)
    })
  }

  #parse(data: { readonly sources: readonly unknown[]; readonly destinations: readonly unknown[] }): Catalog {
    const { topic } = this.#options
    const parsed = parseCatalogData(data, { file: topic, version: '' })
    if (!parsed.ok) throw new Error(formatFaults(parsed.faults))
    return parsed.catalog
  }

  #built<T>(object: StoredObject, build: (plain: Definition) => T): T | undefined {
    const key = keyOf(object)
    try {
      const built = build(this.#options.definitions.plain(object, object.definition))
      this.#unusable.delete(key)
      return built
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      this.#unusable.set(key, problem)
      this.#options.onUnusable(object, problem)
      return undefined
    }
  }
}

type LastOf = { readonly name: ObjectName; readonly object: StoredObject | undefined }

/** Returns what change sets make of each entry in the end, by key. `undefined`: it is removed. */
function lastOf(sets: readonly ChangeSet[]): ReadonlyMap<string, LastOf> {
  const last = new Map<string, LastOf>()
  for (const { put, removed } of sets) {
    for (const name of removed.filter(isEntry)) last.set(keyOf(name), { name, object: undefined })
    for (const object of put.filter(isEntry)) last.set(keyOf(object), { name: object, object })
  }
  return last
}

function setIf<T>(entries: Map<string, T | undefined>, id: string, entry: T | undefined): void {
  if (entry !== undefined) entries.set(id, entry)
}

/**
 * The version of a catalog from the topic, in metrics and log lines: `r` and the number of its last change.
 */
function versionOf(revision: number): string {
  return `r${revision}`
}
