import assert from 'node:assert/strict'
import type { Definition, Definitions } from '../../src/catalog-log/definitions.ts'
import type { ChangeAnswer } from '../../src/catalog-log/desk.ts'
import { GatheredChange, type HistoryChange, readPart } from '../../src/catalog-log/history.ts'
import type { Edit } from '../../src/catalog-log/judge.ts'
import type { StoredObject } from '../../src/catalog-log/log.ts'
import { keyOf, type ObjectName } from '../../src/catalog-log/names.ts'
import type { RecordSeals } from '../../src/catalog-log/record.ts'
import { createPartitionReader } from '../../src/kafka/read/partition-reader.ts'
import type { Random } from './random.ts'
import { workerKafka } from './worker-kafka.ts'

/** What a writer learned of its change. `unknown`: no answer came, so it may have been made. */
export type Outcome =
  | { readonly kind: 'made'; readonly revision: number; readonly version: number | undefined }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'refused'; readonly why: string }

export type Writer = { change(edit: Edit): Promise<Outcome> }

type Tried = {
  readonly key: string
  /** The name of the destination that nobody else gives. `undefined`: it is removed. */
  readonly mark: string | undefined
  readonly base: number | 'none' | undefined
  readonly outcome: Outcome
}

const ids = ['a', 'b', 'c', 'd', 'e']
const shop: ObjectName = { kind: 'source', id: 'shop' }

export const shopEdit: Edit = { name: shop, op: 'put', given: { id: 'shop' } }

export function outcomeOf(answer: ChangeAnswer): Outcome {
  if (!answer.ok) return { kind: 'refused', why: answer.kind }
  return { kind: 'made', revision: answer.revision, version: answer.changed[0]?.version }
}

/** Lets writers change the same few destinations at the same time, and notes what they were told. */
export class CatalogModel {
  readonly #random: Random
  readonly #tried: Tried[] = []
  /** The last version of each object that a writer was told, by key. */
  readonly #seen = new Map<string, number | 'none'>()
  /** What each version has, by key and version. */
  readonly #marks = new Map<string, string>()

  constructor(random: Random) {
    this.#random = random
  }

  /** Makes changes one after the other: right ones, outdated ones, and ones without a condition. */
  async work(writer: Writer, name: string, count: number): Promise<void> {
    for (let index = 0; index < count; index++) {
      const id = ids[this.#random.below(ids.length)] ?? 'a'
      const key = `destination/${id}`
      const isRemoval = this.#random.below(5) === 0
      const mark = isRemoval ? undefined : `${name}-${index}`
      const base = this.#random.below(4) === 0 ? undefined : (this.#seen.get(key) ?? 'none')
      const about = { name: { kind: 'destination', id }, ...(base !== undefined && { base }) } as const
      const given = {
        id,
        name: mark,
        sources: ['shop'],
        sharedSecret: `s-${mark}`,
        hooks: [{ url: `https://example.com/${id}` }],
      }
      const edit: Edit = isRemoval ? { ...about, op: 'remove' } : { ...about, op: 'put', given }
      const outcome = await writer.change(edit)
      this.#tried.push({ key, mark, base, outcome })
      if (outcome.kind !== 'made') continue
      this.#seen.set(key, outcome.version ?? 'none')
      if (outcome.version !== undefined && mark !== undefined)
        this.#marks.set(`${key}@${outcome.version}`, mark)
    }
  }

  /** Notes what a reader sees, as a person who looks again does. */
  see(objects: ReadonlyMap<string, StoredObject>): void {
    for (const id of ids) {
      const key = `destination/${id}`
      const object = objects.get(key)
      this.#seen.set(key, object?.version ?? 'none')
      if (object !== undefined) this.#marks.set(`${key}@${object.version}`, String(object.definition['name']))
    }
  }

  get counts(): Readonly<Record<Outcome['kind'], number>> {
    const counts = { made: 0, unknown: 0, refused: 0 }
    for (const { outcome } of this.#tried) counts[outcome.kind]++
    return counts
  }

  /** Compares what the writers were told with what was made. Returns the objects after all changes. */
  verify(history: readonly HistoryChange[]): ReadonlyMap<string, Definition> {
    const { now, revisionOf, beforeOf } = made(history)
    for (const { key, mark, base, outcome } of this.#tried) {
      if (outcome.kind === 'unknown') continue
      if (outcome.kind === 'refused') {
        if (mark !== undefined) assert.ok(!revisionOf.has(mark), `${mark} was refused and made`)
        continue
      }
      const place = `${key} ${outcome.revision}`
      if (mark === undefined) assert.ok(beforeOf.get(place)?.isRemoved, `${key} was removed, and is there`)
      else assert.equal(revisionOf.get(mark), outcome.revision, `${mark} was made and lost`)
      if (base === undefined) continue
      const before = beforeOf.get(place)?.name
      const seen = base === 'none' ? undefined : this.#marks.get(`${key}@${base}`)
      assert.equal(before, seen, `${key} was changed under another version`)
    }
    return now
  }
}

/**
 * Makes the changes of a history again. `revisionOf`: by the names that only one change gives. `beforeOf`:
 * what a change found, by the key and the revision.
 */
function made(history: readonly HistoryChange[]) {
  const now = new Map<string, Definition>()
  const revisionOf = new Map<string, number>()
  const beforeOf = new Map<string, { readonly name: string | undefined; readonly isRemoved: boolean }>()
  let last = 0
  for (const { revision, objects } of history) {
    assert.ok(revision > last, `change ${revision} comes after change ${last}`)
    last = revision
    for (const { name, before, after } of objects) {
      const key = keyOf(name)
      assert.deepEqual(before, now.get(key), `a change of ${key} was lost before change ${revision}`)
      const former = before === undefined ? undefined : String(before['name'])
      beforeOf.set(`${key} ${revision}`, { name: former, isRemoved: after === undefined })
      if (after === undefined) {
        now.delete(key)
        continue
      }
      now.set(key, after)
      const mark = String(after['name'])
      if (name.kind === 'destination') assert.ok(!revisionOf.has(mark), `${mark} was made twice`)
      revisionOf.set(mark, revision)
    }
  }
  return { now, revisionOf, beforeOf }
}

/** Reads the only partition of a topic, from its first record to its stable end, batch by batch. */
async function* batchesOf(topic: string, brokers?: readonly string[]) {
  const reader = createPartitionReader(workerKafka(brokers === undefined ? {} : { brokers }))
  try {
    yield* reader.readWhole({ topic, partition: 0, from: 0 })
  } finally {
    await reader.stop()
  }
}

/** Reads all changes of a history. */
export async function readHistory(
  topic: string,
  seals: RecordSeals,
  brokers?: readonly string[],
): Promise<readonly HistoryChange[]> {
  const changes: HistoryChange[] = []
  for await (const records of batchesOf(topic, brokers))
    for (const record of records) {
      const read = readPart(seals, record)
      if (!read.ok) throw new Error(read.problem)
      const gathered = new GatheredChange(read.part, () => true)
      assert.ok(gathered.isWhole)
      changes.push(gathered.change())
    }
  return changes
}

/**
 * Counts the records that a compacted topic has. A client that waits for the last offset waits in vain if
 * only the marker of a transaction is left there.
 */
export async function countCompacted(topic: string, brokers?: readonly string[]): Promise<number> {
  let count = 0
  for await (const records of batchesOf(topic, brokers)) count += records.length
  return count
}

/** What of an object all readers have to agree on. */
export function contentOf(
  objects: ReadonlyMap<string, StoredObject>,
  definitions: Definitions,
): Readonly<Record<string, unknown>> {
  const sorted = [...objects].toSorted(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(
    sorted.map(([key, object]) => [
      key,
      { version: object.version, ...definitions.plain(object, object.definition) },
    ]),
  )
}
