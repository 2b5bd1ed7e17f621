import { Breath } from '../async/breath.ts'
import { cheapSteps, inPieces, type Pieces } from '../async/pieces.ts'
import { type Catalog, createCatalog, type Destination, type Source } from '../catalog/catalog.ts'
import { formatFaults } from '../catalog/fault.ts'
import { makingNext, withVersions } from '../catalog/next-catalog.ts'
import { parseCatalogData } from '../catalog/parse.ts'
import { listOf } from '../catalog/plain-data.ts'
import type { Definition, Definitions } from './definitions.ts'
import type { CatalogLog, ChangeSet, StoredObject } from './log.ts'
import { type EntryKind, isEntry, keyOf, type ObjectName } from './names.ts'

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

/** Why an object can't be used, and since when this process knows it, in epoch milliseconds. */
export type Unusable = { readonly problem: string; readonly sinceMs: number }

/** Makes catalogs of the objects of the topic. It never judges a change: the writer has done that. */
export class Entries {
  readonly #options: EntriesOptions
  /** The objects that can't be used, by key. */
  readonly #unusable = new Map<string, Unusable>()

  constructor(options: EntriesOptions) {
    this.#options = options
  }

  get unusable(): ReadonlyMap<string, Unusable> {
    return this.#unusable
  }

  /** Makes the catalog of all objects. */
  all(log: CatalogLog): Catalog {
    const sources = this.#built(parsedSources, log.of('source'))
    const destinations = this.#built(parsedDestinations, log.of('destination'))
    const version = versionOf(log.head?.revision ?? 0)
    return withVersions(createCatalog([...sources.values()], [...destinations.values()], version))
  }

  /**
   * Makes the next catalog. Entries that the change sets don't name keep their objects. Works in pieces,
   * because a burst of changes names thousands of objects.
   */
  async next(before: Catalog, sets: readonly ChangeSet[], breath = new Breath(pieceMs)): Promise<Catalog> {
    const version = versionOf(sets.at(-1)?.head.revision ?? 0)
    const last = await inPieces(lastOf(sets), breath)
    for (const [key, { object }] of last) if (object === undefined) this.#unusable.delete(key)
    const sources = await this.#patch(parsedSources, 'source', last, breath)
    const destinations = await this.#patch(parsedDestinations, 'destination', last, breath)
    return inPieces(makingNext(before, { sources, destinations }, version), breath)
  }

  async #patch<T>(
    parse: Parse<T>,
    kind: EntryKind,
    last: ReadonlyMap<string, LastOf>,
    breath: Breath,
  ): Promise<ReadonlyMap<string, T | undefined>> {
    const patch = new Map<string, T | undefined>()
    const objects: StoredObject[] = []
    for (const { name, object } of last.values()) {
      if (name.kind !== kind) continue
      if (object === undefined) patch.set(name.id, undefined)
      else objects.push(object)
    }
    for (let at = 0; at < objects.length; at += inPiece) {
      for (const [id, entry] of this.#built(parse, objects.slice(at, at + inPiece))) patch.set(id, entry)
      await breath.take()
    }
    return patch
  }

  /** Makes the entries of objects of one kind, by id. Leaves out those that can't be used, and tells them. */
  #built<T>(parse: Parse<T>, objects: readonly StoredObject[]): ReadonlyMap<string, T> {
    const built = new Map<string, T>()
    for (let at = 0; at < objects.length; at += together) {
      const some = objects.slice(at, at + together)
      // A faulty one must not take the others with it.
      if (!this.#build(parse, some, built)) for (const one of some) this.#build(parse, [one], built)
    }
    return built
  }

  /** Returns false if several objects have a fault. A single one that has a fault is told. */
  #build<T>(parse: Parse<T>, objects: readonly StoredObject[], built: Map<string, T>): boolean {
    const { definitions, topic } = this.#options
    try {
      const plains = objects.map((object) => definitions.plain(object, object.definition))
      const entries = parse(plains, topic)
      for (const object of objects) {
        const entry = entries.get(object.id)
        if (entry === undefined) throw new Error('has another id than its record')
        this.#unusable.delete(keyOf(object))
        built.set(object.id, entry)
      }
      return true
    } catch (error) {
      const [only] = objects
      if (objects.length > 1 || only === undefined) return false
      const problem = error instanceof Error ? error.message : String(error)
      const sinceMs = this.#unusable.get(keyOf(only))?.sinceMs ?? Date.now()
      this.#unusable.set(keyOf(only), { problem, sinceMs })
      this.#options.onUnusable(only, problem)
      return true
    }
  }
}

/** To parse objects together takes half as long as one by one. */
const together = 16
/** The objects that are parsed together while others wait: about a millisecond. */
const inPiece = 4
/**
 * How long changes of the catalog keep a process from other work, in milliseconds. On a machine with more
 * work than processors, a piece takes several times as long.
 */
export const pieceMs = 2

/** Parses plain definitions of one kind. Throws if one has a fault. */
type Parse<T> = (plains: readonly Definition[], topic: string) => ReadonlyMap<string, T>

const parsedSources: Parse<Source> = (plains, topic) =>
  parsed({ sources: plains, destinations: [] }, topic).sources

const parsedDestinations: Parse<Destination> = (plains, topic) => {
  const ids = new Set(plains.flatMap((plain) => listOf(plain['sources'])))
  const sources = [...ids].map((id) => ({ id }))
  return parsed({ sources, destinations: plains }, topic).destinations
}

function parsed(
  data: { readonly sources: readonly unknown[]; readonly destinations: readonly unknown[] },
  topic: string,
): Catalog {
  const read = parseCatalogData(data, { file: topic, version: '' })
  if (!read.ok) throw new Error(formatFaults(read.faults))
  return read.catalog
}

type LastOf = { readonly name: ObjectName; readonly object: StoredObject | undefined }

/** Returns what change sets make of each entry in the end, by key. `undefined`: it is removed. */
function* lastOf(sets: readonly ChangeSet[]): Pieces<ReadonlyMap<string, LastOf>> {
  const last = new Map<string, LastOf>()
  let count = 0
  for (const { put, removed } of sets) {
    for (const name of removed) {
      if (++count % cheapSteps === 0) yield
      if (isEntry(name)) last.set(keyOf(name), { name, object: undefined })
    }
    for (const object of put) {
      if (++count % cheapSteps === 0) yield
      if (isEntry(object)) last.set(keyOf(object), { name: object, object })
    }
  }
  return last
}

/**
 * The version of a catalog from the topic, in metrics and log lines: `r` and the number of its last change.
 */
function versionOf(revision: number): string {
  return `r${revision}`
}
