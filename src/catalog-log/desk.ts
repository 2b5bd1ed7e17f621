import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { OneAtATime } from '../async/one-at-a-time.ts'
import type { Variables } from '../catalog/variables.ts'
import { NotWrittenError, type Pen, UnknownOutcomeError } from '../kafka/pen/pen.ts'
import type { PartitionRecords, WrittenRecord } from '../message/records.ts'
import type { Definitions } from './definitions.ts'
import { type Accepted, type Edit, judge, type Judged } from './judge.ts'
import { CatalogLog, type RefusedRecord } from './log.ts'
import { keyOf, type ObjectName } from './names.ts'
import type { CatalogPiece } from './read.ts'
import type { RecordSeals } from './record.ts'

export type DeskOptions = {
  readonly pen: Pick<Pen, 'isHeld' | 'take' | 'write' | 'close'>
  /** Reads the topic from an offset to its present stable end. */
  readonly read: (from: number) => AsyncIterable<CatalogPiece>
  readonly seals: RecordSeals
  readonly definitions: Definitions
  readonly allowAddresses: readonly string[]
  readonly onRefused: (refused: RefusedRecord) => void
  /** Makes the records of the audit trail, which are written in the same transaction. */
  readonly audited: (change: {
    readonly by: string
    readonly changed: readonly ChangedObject[]
  }) => PartitionRecords
}

export type Change = {
  /** All of these are made, or none. An object is named once. */
  readonly edits: readonly Edit[]
  readonly by: string
  readonly variables?: Variables
  /** True: judges the change, and writes nothing. */
  readonly isDryRun?: boolean
  /** True: writes each object, also if it stays the same, although records of the topic were destroyed. */
  readonly isRepair?: boolean
}

/** What a change has made of an object. `version`: `undefined` if the object was removed. */
export type ChangedObject = {
  readonly name: ObjectName
  readonly what: 'created' | 'changed' | 'removed' | 'unchanged'
  readonly version: number | undefined
}

export type ChangeAnswer =
  | { readonly ok: true; readonly revision: number; readonly changed: readonly ChangedObject[] }
  | Extract<Judged, { ok: false }>
  /** Other processes write all the time. */
  | { readonly ok: false; readonly kind: 'busy' }
  /** The topic has lost records. */
  | { readonly ok: false; readonly kind: 'damaged'; readonly problem: string }

type Waiting = Change & {
  readonly resolve: (answer: ChangeAnswer) => void
  readonly reject: (error: unknown) => void
}

/** A change that was judged, and is to be written. `what`: what it makes of each object, by key. */
type Planned = {
  readonly waiting: Waiting
  readonly accepted: readonly Accepted[]
  readonly what: ReadonlyMap<string, ChangedObject['what']>
  readonly changeId: string
}

/** The most changes in one transaction. */
const mostAtOnce = 100
const mostTries = 8
/** The longest pause before the second try, in milliseconds. It doubles with each further try. */
const firstPauseMs = 100

/**
 * Changes the catalog in its topic. It first reads the topic to its end, so a change is judged by all that
 * was ever written, and the pen keeps others from writing in between.
 */
export class CatalogDesk {
  readonly #options: DeskOptions
  readonly #log: CatalogLog
  #waiting: Waiting[] = []
  /** The ids of changes that were read, until the change is answered. */
  readonly #looked = new Map<string, boolean>()
  readonly #turns = new OneAtATime(() => this.#work())

  constructor(options: DeskOptions) {
    this.#options = options
    this.#log = new CatalogLog(options.seals, options.onRefused)
  }

  /** Reads the topic to its end, and returns its objects. Rejects if Kafka doesn't answer. */
  async look(): Promise<CatalogLog> {
    await this.#turns.run()
    return this.#log
  }

  /** Makes a change. Rejects if Kafka doesn't answer, and then says whether the change may have been made. */
  change(change: Change): Promise<ChangeAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<ChangeAnswer>()
    this.#waiting.push({ ...change, resolve, reject })
    this.#turns.run().catch(() => undefined)
    return promise
  }

  async close(): Promise<void> {
    await this.#options.pen.close()
  }

  async #work(): Promise<void> {
    if (this.#waiting.length === 0) return this.#read()
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, mostAtOnce)
      try {
        await this.#make(batch)
      } catch (error) {
        for (const { reject } of batch) reject(error)
        if (this.#waiting.length === 0) throw error
      }
    }
  }

  /** Answers each change of the batch, or puts it back. */
  async #make(batch: readonly Waiting[]): Promise<void> {
    const { pen } = this.#options
    let open = batch
    let planned: readonly Planned[] = []
    for (let tries = 0; tries < mostTries; tries++) {
      if (tries > 0) await delay(Math.random() * firstPauseMs * 2 ** (tries - 1))
      if (!pen.isHeld && open.some(({ isDryRun }) => isDryRun !== true)) await pen.take()
      await this.#read()
      if (this.#isWritten(planned)) return this.#answer(planned)
      planned = this.#plan(open)
      open = planned.map(({ waiting }) => waiting)
      if (open.length === 0) return
      try {
        await this.#write(planned)
        await this.#read()
        return this.#answer(planned)
      } catch (error) {
        if (error instanceof NotWrittenError && error.isFenced) continue
        if (!(error instanceof UnknownOutcomeError)) throw error
      }
    }
    for (const { resolve } of open) resolve({ ok: false, kind: 'busy' })
  }

  async #read(): Promise<void> {
    for await (const { records, next } of this.#options.read(this.#log.next)) {
      for (const record of records) {
        const set = this.#log.take(record)
        if (set !== undefined && this.#looked.has(set.head.changeId))
          this.#looked.set(set.head.changeId, true)
      }
      this.#log.readTo(next)
    }
  }

  /** Returns true if these changes were written although their commit had no answer. */
  #isWritten(planned: readonly Planned[]): boolean {
    const isWritten =
      planned.length > 0 && planned.every(({ changeId }) => this.#looked.get(changeId) === true)
    if (!isWritten) for (const { changeId } of planned) this.#looked.delete(changeId)
    return isWritten
  }

  /**
   * Judges changes. Answers those that aren't written. A change that another one of the batch may concern is
   * put back, because it has to be judged after that.
   */
  #plan(batch: readonly Waiting[]): readonly Planned[] {
    const taken = new Set<string>()
    const planned: Planned[] = []
    for (const waiting of batch) {
      const { edits, isDryRun = false } = waiting
      const keys = edits.map(({ name }) => keyOf(name))
      // The rules about sources concern all objects.
      const isAlone = [...taken, ...keys].some((key) => key.startsWith('source/'))
      if (taken.size > 0 && (isAlone || keys.some((key) => taken.has(key)))) {
        this.#waiting.push(waiting)
        continue
      }
      const judged = this.#judge(waiting)
      if (!judged.ok) {
        waiting.resolve(judged)
        continue
      }
      const what = this.#whatOf(edits, judged.accepted)
      if (isDryRun || judged.accepted.length === 0) waiting.resolve(this.#answerOf(edits, what))
      else {
        for (const key of keys) taken.add(key)
        planned.push({ waiting, accepted: judged.accepted, what, changeId: randomUUID() })
      }
    }
    return planned
  }

  #judge({
    edits,
    variables = {},
    isRepair = false,
  }: Change): Judged | Extract<ChangeAnswer, { kind: 'damaged' }> {
    const { damage, objects } = this.#log
    if (damage !== undefined && !isRepair) return { ok: false, kind: 'damaged', problem: damage }
    const { definitions, allowAddresses } = this.#options
    return judge(edits, objects, { definitions, variables, allowAddresses, atMs: Date.now(), isRepair })
  }

  async #write(planned: readonly Planned[]): Promise<void> {
    const { seals, pen } = this.#options
    let revision = this.#log.head?.revision ?? firstRevision()
    const counts: { source: number; destination: number } = this.#log.counts
    const records: WrittenRecord[] = []
    const audited: PartitionRecords[] = []
    for (const { accepted, waiting, what, changeId } of planned) {
      revision++
      for (const { name, definition } of accepted) {
        const change = what.get(keyOf(name))
        counts[name.kind] += change === 'created' ? 1 : change === 'removed' ? -1 : 0
        records.push(seals.write(keyOf(name), definition ?? null, revision))
      }
      records.push(
        seals.head({ revision, changeId, atMs: Date.now(), by: waiting.by, counts: { ...counts } }),
      )
      audited.push(
        this.#options.audited({ by: waiting.by, changed: this.#answerOf(waiting.edits, what).changed }),
      )
      this.#looked.set(changeId, false)
    }
    await pen.write(records, inOnePlace(audited))
  }

  #answer(planned: readonly Planned[]): void {
    for (const { waiting, what, changeId } of planned) {
      this.#looked.delete(changeId)
      waiting.resolve(this.#answerOf(waiting.edits, what))
    }
  }

  #answerOf(edits: readonly Edit[], what: Planned['what']): Extract<ChangeAnswer, { ok: true }> {
    const changed = edits.map(({ name }): ChangedObject => {
      const key = keyOf(name)
      return { name, what: what.get(key) ?? 'unchanged', version: this.#log.objects.get(key)?.version }
    })
    return { ok: true, revision: this.#log.head?.revision ?? 0, changed }
  }

  #whatOf(edits: readonly Edit[], accepted: readonly Accepted[]): Planned['what'] {
    const byKey = new Map(accepted.map((one) => [keyOf(one.name), one]))
    return new Map(
      edits.map(({ name }) => {
        const key = keyOf(name)
        const one = byKey.get(key)
        const isThere = this.#log.objects.has(key)
        if (one === undefined) return [key, 'unchanged']
        return [key, one.definition === undefined ? 'removed' : isThere ? 'changed' : 'created']
      }),
    )
  }
}

/**
 * Returns the revision before the first change of a topic: the present time in seconds. So the changes of a
 * topic that was made anew are later than all changes of the former one.
 */
function firstRevision(): number {
  return Math.floor(Date.now() / 1_000)
}

/** Joins records of the same partition, because a transaction has one batch after the other for each. */
function inOnePlace(all: readonly PartitionRecords[]): readonly PartitionRecords[] {
  const byPlace = Map.groupBy(all, ({ topic, partition }) => `${topic}/${partition}`)
  return [...byPlace.values()].flatMap((items) => {
    const [first] = items
    return first === undefined ? [] : [{ ...first, records: items.flatMap(({ records }) => records) }]
  })
}
