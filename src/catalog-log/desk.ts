import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Breath } from '../async/breath.ts'
import { OneAtATime } from '../async/one-at-a-time.ts'
import { type Rate, TokenBucket } from '../async/token-bucket.ts'
import type { Quota } from '../catalog/labels.ts'
import type { Variables } from '../catalog/variables.ts'
import { NotWrittenError, type Pen, UnknownOutcomeError, usualTransactionMs } from '../kafka/pen/pen.ts'
import type { PartitionRecords, WrittenRecord } from '../message/records.ts'
import type { Definitions } from './definitions.ts'
import { pieceMs } from './entries.ts'
import type { ObjectDifference } from './difference.ts'
import { historyRecords } from './history.ts'
import { type Accepted, type Edit, judge, type Judged } from './judge.ts'
import { type AskedChange, CatalogLog, type ChangeSet, type RefusedRecord } from './log.ts'
import { isEntry, keyOf, type ObjectName } from './names.ts'
import type { CatalogPiece } from './read.ts'
import type { RecordSeals } from './record.ts'
import { WaitingChanges } from './waiting-changes.ts'

export type DeskOptions = {
  readonly pen: Pick<Pen, 'isHeld' | 'take' | 'write' | 'close'>
  /** Reads the topic from an offset to its present stable end. */
  readonly read: (from: number) => AsyncIterable<CatalogPiece>
  readonly seals: RecordSeals
  readonly definitions: Definitions
  /** The topic to which each change is written too, with its objects before and after. */
  readonly historyTopic: string
  readonly allowAddresses: readonly string[]
  readonly quotas?: readonly Quota[]
  readonly onRefused: (refused: RefusedRecord) => void
  /** Makes the records of the audit trail, which are written in the same transaction. */
  readonly audited: (change: {
    readonly by: string
    readonly note: string | undefined
    readonly deed: Deed | undefined
    readonly changed: readonly ChangedObject[]
  }) => PartitionRecords
}

/** What is done to sessions and links, as the audit trail calls it. */
export type Deed = 'signed_in' | 'signed_out' | 'sessions_ended' | 'links_changed'

/** What makes a request the same as an earlier one. */
export type Once = { readonly changeId: string; readonly request: string }

export type Change = {
  /** All of these are made, or none. An object is named once. */
  readonly edits: readonly Edit[]
  readonly by: string
  /** What the change is, in words, for the audit trail. Empty: the trail doesn't have it. */
  readonly note?: string | undefined
  /** What the audit trail calls the change, if it is one of sessions or links. */
  readonly deed?: Deed | undefined
  /** Makes the change at most once a day: the id of the change, and the digest of what is asked for. */
  readonly once?: Once | undefined
  /** The revision that this change undoes, for the history. */
  readonly undoes?: number | undefined
  readonly variables?: Variables
  /** True: judges the change, and writes nothing. */
  readonly isDryRun?: boolean
  /** True: writes each object, also if it stays the same, although records of the topic were destroyed. */
  readonly isRepair?: boolean
  /**
   * Returns false once its author may not make it any more. It is asked right before the change is judged.
   */
  readonly isAllowed?: () => boolean
  /** True: says that the topic is the catalog from now on, also where it has lost what processes know. */
  readonly accepts?: boolean
  /**
   * The last change that processes know, if this one takes the place of all of theirs: its number is higher.
   */
  readonly after?: number | undefined
}

/** What a change has made of an object. `version`: `undefined` if the object was removed. */
export type ChangedObject = {
  readonly name: ObjectName
  readonly what: 'created' | 'changed' | 'removed' | 'unchanged'
  readonly version: number | undefined
}

export type ChangeAnswer =
  | {
      readonly ok: true
      readonly revision: number
      readonly changed: readonly ChangedObject[]
      /** The objects that differ, as they are stored. */
      readonly differences: readonly ObjectDifference[]
    }
  | Extract<Judged, { ok: false }>
  /** A change with this id was made before. */
  | { readonly ok: false; readonly kind: 'asked'; readonly asked: AskedChange }
  /** Its author may not make it any more. */
  | { readonly ok: false; readonly kind: 'ended' }
  /** Other processes write all the time. */
  | { readonly ok: false; readonly kind: 'busy' }
  /** So many changes wait in this process that no more are taken. Nothing was changed. */
  | { readonly ok: false; readonly kind: 'full' }
  /** The topic has lost records. */
  | { readonly ok: false; readonly kind: 'damaged'; readonly problem: string }
  /** Something is wrong with the topic that would lose changes, or this change. */
  | { readonly ok: false; readonly kind: 'halted'; readonly problem: string }

type Waiting = Change & {
  readonly resolve: (answer: ChangeAnswer) => void
  readonly reject: (error: unknown) => void
}

/** A change that was judged, and is to be written. `what`: what it makes of each object, by key. */
type Planned = {
  readonly waiting: Waiting
  readonly accepted: readonly Accepted[]
  readonly what: ReadonlyMap<string, ChangedObject['what']>
  /** The versions of the objects that stay as they are, by key. */
  readonly present: ReadonlyMap<string, number | undefined>
  readonly changeId: string
}

/** What was written of a change. `versions`: those of its objects, by key. */
type Written = { readonly revision: number; readonly versions: ReadonlyMap<string, number> }

/**
 * `isDoubtful`: the last commit had no answer. `times`: how much longer than usual its transaction may take.
 * `wasRead`: the topic was read to its end for it.
 */
type Batch = { open: readonly Waiting[]; isDoubtful: boolean; times: number; wasRead: boolean }

const doubtful =
  'Kafka did not answer in time: the change may have been made, so look at it before you repeat it'

/** The most changes in one transaction. */
const mostAtOnce = 25
/**
 * How many objects change at most while changes come all the time. Each change costs the broker, and each
 * process of the installation, about a tenth of a millisecond. Deliveries need this time.
 */
export const objectRate: Rate = { perSecond: 200, burst: 50 }
/**
 * While changes with this many objects wait, no more are taken: 50 seconds of work, which is less than most
 * clients and proxies wait for an answer. So a Kafka that doesn't answer, and clients that don't wait for
 * answers, don't fill the memory either.
 */
export const mostWaitingObjects = 10_000
/** A transaction counts as at most this many objects, so that nobody waits for minutes after a large one. */
const mostCounted = 200
/** How long a transaction may take for each of its objects, and at most, in milliseconds. */
const transactionMs = { each: 1, most: 15 * 60_000 } as const
/** By this factor, a transaction gets more time if Kafka has ended the last one because it took too long. */
const longerBy = 4
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
  readonly #waiting = new WaitingChanges<Waiting>()
  readonly #rate = new TokenBucket(objectRate, performance.now())
  /** Set while the desk rests, because many objects have changed. Changes wait meanwhile. */
  #rest: NodeJS.Timeout | undefined
  /** How many objects the changes name that have no answer yet. */
  #unanswered = 0
  /** How long a transaction may take with the pen that is held, in milliseconds. */
  #transactionMs: number = usualTransactionMs
  /** The changes whose commit may have had no answer, by their ids, and what was read of them. */
  readonly #looked = new Map<string, Written | undefined>()
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
  async change(change: Change): Promise<ChangeAnswer> {
    // A change that is larger than what may wait is taken if nothing waits.
    if (this.#unanswered >= mostWaitingObjects) return { ok: false, kind: 'full' }
    const objects = change.edits.length
    this.#unanswered += objects
    try {
      const { promise, resolve, reject } = Promise.withResolvers<ChangeAnswer>()
      this.#waiting.add({ ...change, resolve, reject })
      this.#goOn()
      return await promise
    } finally {
      this.#unanswered -= objects
    }
  }

  async close(): Promise<void> {
    await this.#options.pen.close()
  }

  /** Makes the next changes, unless the desk rests. Reads the topic to its end in any case. */
  async #work(): Promise<void> {
    if (this.#waiting.areNone || this.#isResting()) return this.#read()
    const batch = { open: this.#waiting.take(mostAtOnce), isDoubtful: false, times: 1, wasRead: false }
    try {
      await this.#make(batch)
    } catch (cause) {
      const error = batch.isDoubtful ? new UnknownOutcomeError(doubtful, { cause }) : cause
      for (const { reject } of batch.open) reject(error)
      // Who only looks shares this turn, and would take what was read earlier for the present.
      if (!batch.wasRead) throw cause
    } finally {
      if (!this.#waiting.areNone) this.#goOn()
    }
  }

  /** Returns true while too many objects have changed of late. Goes on by itself after that. */
  #isResting(): boolean {
    const restMs = this.#rate.take(performance.now(), 0)
    if (restMs === 0) return false
    this.#rest ??= setTimeout(() => {
      this.#rest = undefined
      this.#goOn()
    }, restMs)
    return true
  }

  #goOn(): void {
    if (this.#rest === undefined) this.#turns.run().catch(() => undefined)
  }

  /** Answers each change of the batch, or puts it back. `batch.open` has those that are neither. */
  async #make(batch: Batch): Promise<void> {
    let planned: readonly Planned[] = []
    for (let tries = 0; tries < mostTries; tries++) {
      if (tries > 0) await delay(Math.random() * firstPauseMs * 2 ** (tries - 1))
      if (batch.open.some(({ isDryRun }) => isDryRun !== true)) await this.#takePen(batch)
      await this.#read()
      batch.wasRead = true
      const sets = this.#setsOf(planned)
      if (sets !== undefined) return this.#answerFound(planned, sets)
      batch.isDoubtful = false
      planned = await this.#plan(batch.open)
      batch.open = planned.map(({ waiting }) => waiting)
      if (planned.length === 0) return
      try {
        return answerAll(planned, await this.#write(planned))
      } catch (error) {
        if (error instanceof NotWrittenError && error.isFenced) {
          if (error.isLate) batch.times *= longerBy
          continue
        }
        if (!(error instanceof UnknownOutcomeError)) throw error
        batch.isDoubtful = true
      }
    }
    if (batch.isDoubtful) throw new Error('other processes write all the time')
    for (const { resolve } of batch.open) resolve({ ok: false, kind: 'busy' })
  }

  /**
   * Takes the pen, unless it is held. A change of 100,000 objects needs a longer transaction than others, and
   * so does one that a quota of the broker slows down.
   */
  async #takePen({ open, times }: Batch): Promise<void> {
    const { pen } = this.#options
    const objects = open.reduce((sum, { edits }) => sum + edits.length, 0)
    const usualMs = Math.max(usualTransactionMs, objects * transactionMs.each)
    const neededMs = Math.min(transactionMs.most, usualMs * times)
    if (pen.isHeld && neededMs === this.#transactionMs) return
    await pen.take(neededMs)
    this.#transactionMs = neededMs
  }

  /** Answers changes that were found in the topic. Another process may have made one with the same id. */
  #answerFound(planned: readonly Planned[], sets: readonly Written[]): void {
    for (const { waiting } of planned) {
      const asked = waiting.once && this.#log.asked(waiting.once.changeId)
      if (asked !== undefined) waiting.resolve({ ok: false, kind: 'asked', asked })
    }
    answerAll(planned, sets)
  }

  async #read(): Promise<void> {
    for await (const { records, next } of this.#options.read(this.#log.next)) {
      for (const record of records) {
        const set = this.#log.take(record)
        if (set !== undefined && this.#looked.has(set.head.changeId))
          this.#looked.set(set.head.changeId, writtenOf(set))
      }
      this.#log.readTo(next)
    }
  }

  /**
   * Returns what became of changes whose commit had no answer. `undefined` if they were not written, and then
   * they never will be.
   */
  #setsOf(planned: readonly Planned[]): readonly Written[] | undefined {
    const sets = planned.flatMap(({ changeId }) => this.#looked.get(changeId) ?? [])
    for (const { changeId } of planned) this.#looked.delete(changeId)
    return planned.length > 0 && sets.length === planned.length ? sets : undefined
  }

  /**
   * Judges changes, in pieces. Answers those that aren't written. A change that another one of the batch may
   * concern is put back, because it has to be judged after that.
   */
  async #plan(batch: readonly Waiting[]): Promise<readonly Planned[]> {
    const breath = new Breath(pieceMs)
    const taken = new Set<string>()
    let hasSource = false
    const planned: Planned[] = []
    const coming = new Map<string, Accepted['definition']>()
    for (const waiting of batch) {
      await breath.take()
      const { edits, once, isDryRun = false } = waiting
      const keys = [...edits.map(({ name }) => keyOf(name)), ...(once === undefined ? [] : [once.changeId])]
      // The rules about sources concern all objects.
      const isOfSource = edits.some(({ name }) => name.kind === 'source')
      if (taken.size > 0 && (hasSource || isOfSource || keys.some((key) => taken.has(key)))) {
        this.#waiting.add(waiting)
        continue
      }
      if (waiting.isAllowed?.() === false) {
        waiting.resolve({ ok: false, kind: 'ended' })
        continue
      }
      const asked = once && this.#log.asked(once.changeId)
      if (asked !== undefined) {
        waiting.resolve({ ok: false, kind: 'asked', asked })
        continue
      }
      const judged = this.#judge(waiting, coming)
      if (!judged.ok) {
        waiting.resolve(judged)
        continue
      }
      const what = this.#whatOf(edits, judged.accepted)
      const isEmpty = judged.accepted.length === 0 && !isAcceptance(waiting)
      if (isDryRun || isEmpty) {
        const changed = this.#presentOf(edits, what)
        const differences = differencesOf(judged.accepted)
        waiting.resolve({ ok: true, revision: this.#log.head?.revision ?? 0, changed, differences })
      } else {
        for (const key of keys) taken.add(key)
        hasSource ||= isOfSource
        for (const { name, definition } of judged.accepted) coming.set(keyOf(name), definition)
        const present = new Map(keys.map((key) => [key, this.#log.all.get(key)?.version]))
        planned.push({
          waiting,
          accepted: judged.accepted,
          what,
          present,
          changeId: once?.changeId ?? randomUUID(),
        })
      }
    }
    return planned
  }

  #judge(
    change: Change,
    coming: ReadonlyMap<string, Accepted['definition']>,
  ): Judged | Extract<ChangeAnswer, { kind: 'damaged' }> {
    const { edits, variables = {}, isRepair = false } = change
    const { damage, all } = this.#log
    if (damage !== undefined && !isRepair && !isAcceptance(change))
      return { ok: false, kind: 'damaged', problem: damage }
    const { definitions, allowAddresses, quotas = [] } = this.#options
    const by = { definitions, variables, allowAddresses, quotas, coming, atMs: Date.now(), isRepair }
    return judge(edits, all, by)
  }

  /** Writes changes in one transaction. Returns the revision of each, and the versions of its objects. */
  async #write(planned: readonly Planned[]): Promise<readonly Written[]> {
    const { seals, pen, audited, historyTopic } = this.#options
    const { head } = this.#log
    let revision = head?.revision ?? revisionNow()
    let { lineage, isAccepted } = head ?? { lineage: randomUUID() }
    const revisions: number[] = []
    const counts = { ...this.#log.counts }
    const records: WrittenRecord[] = []
    const trail: PartitionRecords[] = []
    for (const { accepted, waiting, what, changeId } of planned) {
      if (waiting.accepts === true) {
        lineage ??= randomUUID()
        isAccepted = true
        // It has to be later than what any process has seen of a log that was longer. The present time
        // doesn't suffice after many changes in a short time, or changes of a process whose clock is ahead.
        revision = Math.max(revision, revisionNow(), waiting.after ?? 0)
      }
      revision++
      revisions.push(revision)
      for (const { name, definition } of accepted) {
        const change = what.get(keyOf(name))
        counts[name.kind] += change === 'created' ? 1 : change === 'removed' ? -1 : 0
        records.push(seals.write(keyOf(name), definition ?? null, revision))
      }
      const { by, note, deed, undoes, once, edits } = waiting
      const made = { revision, changeId, atMs: Date.now(), by }
      const ofLog = { counts: { ...counts }, lineage, isAccepted }
      records.push(seals.head({ ...made, request: once?.request, ...ofLog }))
      if (note !== '') trail.push(audited({ by, note, deed, changed: this.#presentOf(edits, what) }))
      // A token that was revoked must not come back by an undo.
      const objects = differencesOf(accepted.filter(({ name }) => isEntry(name)))
      if (objects.length > 0)
        trail.push({
          topic: historyTopic,
          partition: 0,
          records: historyRecords(seals, { ...made, undoes, objects }),
        })
      this.#looked.set(changeId, undefined)
    }
    this.#rate.take(performance.now(), Math.min(records.length - planned.length, mostCounted))
    const offsets = await pen.write(records, inOnePlace(trail))
    for (const { changeId } of planned) this.#looked.delete(changeId)
    let at = 0
    return planned.map(({ accepted }, index): Written => {
      const versions = accepted.map(({ name }) => [keyOf(name), offsets[at++] ?? -1] as const)
      // The head follows.
      at++
      return { revision: revisions[index] ?? 0, versions: new Map(versions) }
    })
  }

  /** Returns what a change makes of its objects, with their present versions. */
  #presentOf(edits: readonly Edit[], what: Planned['what']): readonly ChangedObject[] {
    return edits.map(({ name }) => {
      const key = keyOf(name)
      return { name, what: what.get(key) ?? 'unchanged', version: this.#log.all.get(key)?.version }
    })
  }

  #whatOf(edits: readonly Edit[], accepted: readonly Accepted[]): Planned['what'] {
    const byKey = new Map(accepted.map((one) => [keyOf(one.name), one]))
    return new Map(
      edits.map(({ name }) => {
        const key = keyOf(name)
        const one = byKey.get(key)
        const isThere = this.#log.all.has(key)
        if (one === undefined) return [key, 'unchanged']
        return [key, one.definition === undefined ? 'removed' : isThere ? 'changed' : 'created']
      }),
    )
  }
}

/** Returns true if a change only says that the topic is right as it is. It counts what is there. */
function isAcceptance({ accepts, edits }: Change): boolean {
  return accepts === true && edits.length === 0
}

/** Answers changes that were written. */
function answerAll(planned: readonly Planned[], written: readonly Written[]): void {
  for (const [index, { waiting, accepted, what, present }] of planned.entries()) {
    const { revision, versions } = written[index] ?? { revision: 0, versions: new Map<string, number>() }
    const changed = waiting.edits.map(({ name }): ChangedObject => {
      const key = keyOf(name)
      const made = what.get(key) ?? 'unchanged'
      const version = made === 'removed' ? undefined : (versions.get(key) ?? present.get(key))
      return { name, what: made, version }
    })
    waiting.resolve({ ok: true, revision, changed, differences: differencesOf(accepted) })
  }
}

function differencesOf(accepted: readonly Accepted[]): readonly ObjectDifference[] {
  return accepted.map(({ name, before, definition }) => ({ name, before, after: definition }))
}

function writtenOf({ head, put }: ChangeSet): Written {
  return { revision: head.revision, versions: new Map(put.map((object) => [keyOf(object), object.version])) }
}

/**
 * Returns the revision before the first change of a topic: the present time in seconds. So the changes of a
 * topic that was made anew are later than all changes of the former one.
 */
function revisionNow(): number {
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
