import { type Catalog, createCatalog, type Destination, type Source } from '../catalog/catalog.ts'
import { formatFaults } from '../catalog/fault.ts'
import { nextCatalog } from '../catalog/next-catalog.ts'
import { parseCatalogData } from '../catalog/parse.ts'
import { listOf } from '../catalog/plain-data.ts'
import type { Definition, Definitions } from './definitions.ts'
import type { CatalogLog, ChangeSet, StoredObject } from './log.ts'
import { keyOf, type ObjectName } from './names.ts'

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

  /** Makes the next catalog. Entries that the change sets don't name keep their objects. */
  next(before: Catalog, sets: readonly ChangeSet[]): Catalog {
    const sources = new Map<string, Source | undefined>()
    const destinations = new Map<string, Destination | undefined>()
    for (const { put, removed } of sets) {
      for (const { kind, id } of removed) {
        this.#unusable.delete(keyOf({ kind, id }))
        if (kind === 'source') sources.set(id, undefined)
        else destinations.set(id, undefined)
      }
      for (const object of put) {
        if (object.kind === 'source') setIf(sources, object.id, this.#source(object))
        else setIf(destinations, object.id, this.#destination(object))
      }
    }
    const revision = sets.at(-1)?.head.revision ?? 0
    return nextCatalog(before, { sources, destinations }, versionOf(revision))
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

function setIf<T>(entries: Map<string, T | undefined>, id: string, entry: T | undefined): void {
  if (entry !== undefined) entries.set(id, entry)
}

/**
 * The version of a catalog from the topic, in metrics and log lines: `r` and the number of its last change.
 */
function versionOf(revision: number): string {
  return `r${revision}`
}
