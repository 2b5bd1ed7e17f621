import {
  type EntryKind,
  type ObjectName,
  type ObjectKind,
  headKey,
  isEntry,
  keyOf,
  nameOf,
  objectKinds,
} from './names.ts'
import { type Head, headOf, type RecordSeals, type SignedRecord } from './record.ts'
import { atOnce, cheapSteps, type Pieces } from '../async/pieces.ts'
import type { WholeRecord } from '../message/records.ts'

/** An object of the catalog as its topic has it: secrets are sealed. */
export type StoredObject = ObjectName & {
  /** The offset of its record, which is its version: it survives compaction, and no later one is lower. */
  readonly version: number
  readonly revision: number
  readonly definition: Readonly<Record<string, unknown>>
}

/** A source or a destination. */
export type StoredEntry = StoredObject & { readonly kind: EntryKind }

/** A change set. All of it takes effect at once. */
export type ChangeSet = {
  readonly head: Head
  readonly put: readonly StoredObject[]
  readonly removed: readonly ObjectName[]
}

/** A change that a request with a key has asked for. */
export type AskedChange = {
  readonly revision: number
  readonly atMs: number
  /** The digest of the request. */
  readonly request: string
  /** The versions of the objects that it made, by key. */
  readonly versions: ReadonlyMap<string, number>
}

/**
 * How long a request with a key is remembered, in milliseconds. The heads of the last day are all there,
 * because the topic compacts nothing younger (`min.compaction.lag.ms`).
 */
export const rememberedMs = 24 * 3_600_000

/** A record that was not used, and why. */
export type RefusedRecord = { readonly offset: number; readonly key: string; readonly problem: string }

/**
 * The objects of the catalog, from the records of its topic in the order of their offsets. A change set takes
 * effect with its last record, the head.
 */
export class CatalogLog {
  readonly #seals: RecordSeals
  readonly #onRefused: (refused: RefusedRecord) => void
  readonly #all = new Map<string, StoredObject>()
  readonly #entries = new Map<string, StoredEntry>()
  readonly #counts: Record<ObjectKind, number> = { source: 0, destination: 0, token: 0 }
  /** By the ids of the changes, the oldest first. */
  readonly #asked = new Map<string, AskedChange>()
  #pending: SignedRecord[] = []
  #head: Head | undefined
  /**
   * The highest revision of a record so far. Revisions never fall, so an old record that is replayed is seen.
   */
  #highest = 0
  #next = 0
  #hasRefused = false
  /** The keys of the objects, or of the head, whose last record was refused, with its offset. */
  readonly #overwritten = new Map<string, number>()
  /** The keys of objects of kinds that this version doesn't know. */
  readonly #unknown = new Set<string>()
  /** Why a record after the last change can't be judged: it has a key that this process doesn't know. */
  #otherKey: string | undefined

  constructor(seals: RecordSeals, onRefused: (refused: RefusedRecord) => void) {
    this.#seals = seals
    this.#onRefused = onRefused
  }

  /** The offset at which the reading continues. */
  get next(): number {
    return this.#next
  }

  /** The last head. `undefined` before the first change. */
  get head(): Head | undefined {
    return this.#head
  }

  /** The sources and destinations, which are the catalog. */
  get objects(): ReadonlyMap<string, StoredEntry> {
    return this.#entries
  }

  /**
   * What else the topic has is here too. Whoever goes through all of it must not take a token for an entry.
   */
  get all(): ReadonlyMap<string, StoredObject> {
    return this.#all
  }

  of(kind: ObjectKind): readonly StoredObject[] {
    return [...this.#all.values()].filter((object) => object.kind === kind)
  }

  /** Returns the change with an id, if a request with a key has asked for it within the last day. */
  asked(changeId: string): AskedChange | undefined {
    const asked = this.#asked.get(changeId)
    return asked !== undefined && asked.atMs > Date.now() - rememberedMs ? asked : undefined
  }

  /** How many objects of each kind there are. */
  get counts(): Readonly<Record<ObjectKind, number>> {
    return { ...this.#counts }
  }

  /**
   * Returns what is wrong with the log as it was read to its end. Either this process lacks a key. Or the log
   * has fewer or more objects than its head says, because somebody without a key has overwritten or deleted
   * records, or the topic was cut.
   */
  get damage(): string | undefined {
    if (this.#otherKey !== undefined) return `a record of it ${this.#otherKey}`
    if (this.#pending.length > 0) return 'its last change has no end'
    if (this.#head === undefined)
      return this.#hasRefused ? 'none of its records was written with a key of catalog.keysFile' : undefined
    const counts = { token: 0, ...this.#head.counts }
    const wrong = objectKinds.filter((kind) => this.#counts[kind] !== counts[kind])
    if (wrong.length === 0) return undefined
    const listed = (of: Readonly<Record<ObjectKind, number>>): string =>
      wrong.map((kind) => `${of[kind]} ${kind}s`).join(' and ')
    return `it has ${listed(this.#counts)}, and its last change says ${listed(counts)}`
  }

  /**
   * The keys whose last record in the topic isn't Sluice's. What it was is in memory, and lost to whoever
   * reads the topic after Kafka has compacted it. `import --repair` writes it again.
   */
  get overwritten(): readonly string[] {
    return [...this.#overwritten.keys()]
  }

  /** The keys of objects of kinds that this version doesn't know, and so doesn't use. */
  get unknown(): readonly string[] {
    return [...this.#unknown]
  }

  /** Says why a later record can't be judged here. `undefined` if there is none. */
  get otherKey(): string | undefined {
    return this.#otherKey
  }

  /** Says that there is no further record before this offset. */
  readTo(next: number): void {
    this.#next = Math.max(this.#next, next)
  }

  /** Takes the next record. Returns the change set that the record completes. */
  take(record: WholeRecord): ChangeSet | undefined {
    return atOnce(this.taking(record))
  }

  /** Does the same in pieces. The change set takes effect in the last one. */
  *taking(record: WholeRecord): Pieces<ChangeSet | undefined> {
    this.#next = record.offset + 1
    const read = this.#seals.read(record)
    if (!read.ok) {
      if (read.isOfOtherKey === true) this.#otherKey = read.problem
      else this.#noteOverwritten(record)
      return this.#refuse(record, read.problem)
    }
    const { key, revision, value } = read.record
    if (revision < this.#highest || revision <= (this.#head?.revision ?? 0)) {
      this.#noteOverwritten(record)
      return this.#refuse(record, 'is older than the records before it: it was written again')
    }
    this.#highest = revision
    if (key !== headKey) {
      if (nameOf(key) === undefined) return this.#takeUnknown(record, read.record)
      this.#pending.push(read.record)
      return undefined
    }
    const head = headOf(value)
    return head === undefined
      ? this.#refuse(record, 'is no head that this version knows')
      : yield* this.#apply(head)
  }

  *#apply(head: Head): Pieces<ChangeSet> {
    const pending = this.#pending
    const put: StoredObject[] = []
    const removed: ObjectName[] = []
    const made: (StoredObject | undefined)[] = []
    for (const [index, { key, value, offset, revision }] of pending.entries()) {
      if (index % cheapSteps === 0) yield
      const name = nameOf(key)
      if (name === undefined) continue
      if (value === null) {
        removed.push(name)
        continue
      }
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only Sluice has the key that signed it
      const definition = value as StoredObject['definition']
      const object = { ...name, version: offset, revision, definition }
      made[index] = object
      put.push(object)
    }
    this.#pending = []
    this.#head = head
    this.#otherKey = undefined
    // The head comes last.
    this.#overwritten.delete(headKey)
    for (const [index, { key, offset }] of pending.entries()) this.#set(key, made[index], offset)
    this.#remember(head, put)
    return { head, put, removed }
  }

  /** `object`: `undefined` deletes it. */
  #set(key: string, object: StoredObject | undefined, offset: number): void {
    if (this.#overwritten.size > 0 && (this.#overwritten.get(key) ?? Infinity) < offset)
      this.#overwritten.delete(key)
    if (object === undefined) {
      const former = this.#all.get(key)
      if (former === undefined) return
      this.#counts[former.kind]--
      this.#all.delete(key)
      this.#entries.delete(key)
      return
    }
    const { size } = this.#all
    this.#all.set(key, object)
    if (this.#all.size > size) this.#counts[object.kind]++
    if (isEntry(object)) this.#entries.set(key, object)
  }

  #remember({ changeId, request, revision, atMs }: Head, put: readonly StoredObject[]): void {
    for (const [id, asked] of this.#asked) {
      if (asked.atMs > atMs - rememberedMs) break
      this.#asked.delete(id)
    }
    if (request === undefined) return
    const versions = new Map(put.map((object) => [keyOf(object), object.version]))
    this.#asked.set(changeId, { revision, atMs, request, versions })
  }

  #takeUnknown(record: WholeRecord, { key, value }: SignedRecord): undefined {
    if (value === null) {
      this.#unknown.delete(key)
      return undefined
    }
    this.#unknown.add(key)
    return this.#refuse(record, 'has a key that this version does not know')
  }

  #refuse({ offset, key }: WholeRecord, problem: string): undefined {
    this.#hasRefused = true
    this.#onRefused({ offset, key: String(key), problem })
  }

  #noteOverwritten({ offset, key: bytes }: WholeRecord): void {
    const key = String(bytes)
    const isOurs = key === headKey ? this.#head !== undefined : this.#all.has(key)
    if (isOurs) this.#overwritten.set(key, offset)
  }
}
