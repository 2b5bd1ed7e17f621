import { isRecord, recordOf } from '../catalog/plain-data.ts'
import type { WholeRecord, WrittenRecord } from '../message/records.ts'
import type { Made, ObjectDifference } from './difference.ts'
import { keyOf, nameOf, type ObjectName } from './names.ts'
import type { RecordSeals } from './record.ts'

/** A change set as the history has it. */
export type HistoryChange = {
  readonly revision: number
  readonly changeId: string
  /** When the change was made, in epoch milliseconds. */
  readonly atMs: number
  readonly by: string
  /** The revision that this change has undone. */
  readonly undoes: number | undefined
  /** The objects that it changed, with their definitions as they were stored. */
  readonly objects: readonly ObjectDifference[]
}

/** The most characters of the definitions in a record. A record has more only if one definition alone has. */
const mostCharacters = 256 * 1_024

/** A definition before or after a change. An object that didn't exist has none of this side. */
type Side = { readonly key: string } & ({ readonly before: unknown } | { readonly after: unknown })

/**
 * Makes the records of a change. A large change has several records, in one transaction. They have HMACs like
 * the records of the catalog, and keys that no object has, so neither topic takes a record of the other.
 */
export function historyRecords(
  seals: RecordSeals,
  { objects, ...change }: HistoryChange,
): readonly WrittenRecord[] {
  const parts: Side[][] = [[]]
  let characters = 0
  for (const side of objects.flatMap(sidesOf)) {
    const size = JSON.stringify(side).length
    if (characters > 0 && characters + size > mostCharacters) {
      parts.push([])
      characters = 0
    }
    parts.at(-1)?.push(side)
    characters += size
  }
  const { revision } = change
  return parts.map((sides, part) =>
    seals.write(`change/${revision}/${part}`, { ...change, part, of: parts.length, sides }, revision),
  )
}

function sidesOf({ name, before, after }: ObjectDifference): readonly Side[] {
  const key = keyOf(name)
  return [
    ...(before === undefined ? [] : [{ key, before }]),
    ...(after === undefined ? [] : [{ key, after }]),
  ]
}

/** A part of a change, from one record. */
type Part = Omit<HistoryChange, 'objects'> & {
  readonly part: number
  readonly of: number
  readonly sides: readonly Side[]
  readonly offset: number
}

export type PartRead =
  | { readonly ok: true; readonly part: Part }
  | { readonly ok: false; readonly problem: string }

/** Reads a record of the history. */
export function readPart(seals: RecordSeals, record: WholeRecord): PartRead {
  const read = seals.read(record)
  if (!read.ok) return read
  const { value, key, offset } = read.record
  const isPart = key.startsWith('change/') && isRecord(value) && typeof value['part'] === 'number'
  if (!isPart) return { ok: false, problem: 'is no change that this version knows' }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only Sluice has the key that signed it
  const part = value as unknown as Part
  return { ok: true, part: { ...part, offset } }
}

/** What was read so far of a change. */
export class GatheredChange {
  readonly #about: Part
  readonly #keeps: (key: string) => boolean
  readonly #parts = new Set<number>()
  readonly #made = new Map<string, { isBefore: boolean; isAfter: boolean }>()
  readonly #kept = new Map<string, { before?: Definition; after?: Definition }>()
  /** The offset of its first record that was read. */
  offset: number

  /** `keeps`: says of which objects the definitions are kept. */
  constructor(first: Part, keeps: (key: string) => boolean) {
    this.#about = first
    this.#keeps = keeps
    this.offset = first.offset
    this.take(first)
  }

  /** Takes a part, in any order. One that was taken before changes nothing. */
  take({ part, sides, offset }: Part): void {
    if (this.#parts.has(part)) return
    this.#parts.add(part)
    this.offset = Math.min(this.offset, offset)
    for (const side of sides) {
      const made = this.#made.get(side.key) ?? { isBefore: false, isAfter: false }
      this.#made.set(side.key, {
        isBefore: made.isBefore || 'before' in side,
        isAfter: made.isAfter || 'after' in side,
      })
      if (!this.#keeps(side.key)) continue
      const kept = this.#kept.get(side.key) ?? {}
      if ('before' in side) this.#kept.set(side.key, { ...kept, before: recordOf(side.before) })
      else this.#kept.set(side.key, { ...kept, after: recordOf(side.after) })
    }
  }

  /** True if its first record was read. */
  get hasBegun(): boolean {
    return this.#parts.has(0)
  }

  /** False if records of it are missing, because they were deleted. */
  get isWhole(): boolean {
    return this.#parts.size === this.#about.of
  }

  get revision(): number {
    return this.#about.revision
  }

  get count(): number {
    return this.#made.size
  }

  has(key: string): boolean {
    return this.#made.has(key)
  }

  /** Returns what the change has made of its objects, of at most so many. */
  made(most: number): readonly { readonly name: ObjectName; readonly what: Made }[] {
    return [...this.#made].slice(0, most).flatMap(([key, { isBefore, isAfter }]) => {
      const name = nameOf(key)
      return name === undefined
        ? []
        : [{ name, what: !isBefore ? 'created' : isAfter ? 'changed' : 'removed' }]
    })
  }

  /** Returns the change, with the objects that were kept. */
  change(): HistoryChange {
    const { revision, changeId, atMs, by, undoes } = this.#about
    const objects = [...this.#kept].flatMap(([key, { before, after }]): ObjectDifference[] => {
      const name = nameOf(key)
      return name === undefined ? [] : [{ name, before, after }]
    })
    return { revision, changeId, atMs, by, undoes, objects }
  }
}

type Definition = Readonly<Record<string, unknown>>
