import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { type ChainedBatch, ClassicLevel } from 'classic-level'
import { Breath } from '../async/breath.ts'
import type { Pace } from '../async/pace.ts'
import { cheapSteps, inPieces, type Pieces } from '../async/pieces.ts'
import { recordOf } from '../catalog/plain-data.ts'
import { type KeptRecord, keptHead, keptObject, readHead, readKept } from './kept-record.ts'
import { pieceMs } from './entries.ts'
import type { CatalogLog, ChangeSet, StoredObject } from './log.ts'
import { headKey, keyOf } from './names.ts'
import type { Head, RecordSeals } from './record.ts'

/** Where in which topic a copy ends. */
export type CopyPlace = {
  /** The id of the topic. Empty if the brokers give topics no ids. */
  readonly topicId: string
  /** The offset after the last record. */
  readonly next: number
  /** When the copy was written, in epoch milliseconds. */
  readonly writtenMs: number
  /** The number of the last change, and the lineage of its head. */
  readonly revision: number
  readonly lineage: string | undefined
}

export type ReadCopy = { readonly place: CopyPlace; readonly log: CatalogLog }

/** What a change set has changed. */
type Changes = Pick<ChangeSet, 'put' | 'removed'>

/** Objects by key that have changed since a revision. `undefined`: the object was removed. */
type CopyChanges = ReadonlyMap<string, StoredObject | undefined>

/** How long another process may have the copy open, in milliseconds. */
const lockedForMs = 10_000
/** More changes than this are written in several steps. Between these, there is no copy. */
const mostAtOnce = 5_000
const placeKey = 'place'
const text = { keyEncoding: 'utf8', valueEncoding: 'utf8' } as const
type Level = ClassicLevel
type Batch = ChainedBatch<Level, string, string>

/**
 * The copy of a catalog on the disk, in a LevelDB. To write a change takes as long as the change is large. It
 * has the records as the topic has them: signed, and with sealed secrets. Several processes may share it.
 * Each opens it only while it reads or writes.
 */
export class DiskCopy {
  readonly #path: string
  readonly #seals: RecordSeals
  readonly #pace: Pace | undefined

  /** `pace`: how much of its time the process may spend on writing. `undefined`: all of it. */
  constructor(path: string, seals: RecordSeals, pace?: Pace) {
    this.#path = path
    this.#seals = seals
    this.#pace = pace
  }

  /** Returns where the copy ends. `undefined`: there is none. */
  async place(): Promise<CopyPlace | undefined> {
    if (!existsSync(this.#path)) return undefined
    return this.#opened((level) => this.#placeIn(level))
  }

  /** Reads the copy. Returns `undefined` if there is none, and a text that says why it can't be used. */
  async read(): Promise<ReadCopy | string | undefined> {
    if (!existsSync(this.#path)) return undefined
    return this.#opened(async (level) => {
      const place = await this.#placeIn(level)
      if (place === undefined) return undefined
      const records: KeptRecord[] = []
      for await (const [key, line] of level.iterator())
        if (key !== placeKey) records.push(readLine(key, line))
      const read = readKept(this.#seals, records)
      return read.ok ? { place, log: read.log } : read.problem
    })
  }

  /**
   * Brings the copy to the end of a log. `sets`: what has changed since the revision `since`. If the copy is
   * older, or of another log, it is compared with the whole log. Does nothing if another process has written
   * this revision.
   */
  async write(
    log: Pick<CatalogLog, 'all' | 'head' | 'next'>,
    topicId: string,
    { since, sets }: { readonly since: number; readonly sets: readonly Changes[] },
  ): Promise<void> {
    const { head, next } = log
    if (head === undefined) return
    await this.#opened(async (level) => {
      const former = await this.#placeIn(level)
      const isSame = former?.topicId === topicId && former.lineage === head.lineage
      if (isSame && former.revision >= head.revision) return
      if (isSame && former.revision >= since) {
        const changes = await inPieces(changesIn(sets), new Breath(pieceMs, this.#pace))
        return this.#put(level, changes, { head, next, topicId })
      }
      // The log goes on while this is compared, so what it has now is written.
      const now = { head: log.head ?? head, next: log.next, topicId }
      const all = new Map(log.all)
      await this.#put(level, await differenceOf(level, all, isSame ? former.revision : -1), now)
    })
  }

  /** The copy of another installation, or of one with other keys, counts as none. */
  async #placeIn(level: Level): Promise<CopyPlace | undefined> {
    const [stored, line] = await level.getMany([placeKey, headKey])
    if (stored === undefined || line === undefined) return undefined
    const head = readHead(this.#seals, readLine(headKey, line))
    if (head === undefined) return undefined
    const { topicId, next, writtenMs } = recordOf(JSON.parse(stored))
    const { revision, lineage } = head
    return { topicId: String(topicId), next: Number(next), writtenMs: Number(writtenMs), revision, lineage }
  }

  async #put(
    level: Level,
    changes: CopyChanges,
    { head, next, topicId }: { readonly head: Head; readonly next: number; readonly topicId: string },
  ): Promise<void> {
    const place = { topicId, next, writtenMs: Date.now() }
    const breath = new Breath(pieceMs, this.#pace)
    let batch: Batch = level.batch()
    if (changes.size > mostAtOnce) await level.del(placeKey)
    for (const [key, object] of changes) {
      if (object === undefined) batch.del(key)
      else put(batch, keptObject(this.#seals, object))
      if (batch.length >= mostAtOnce) {
        await batch.write()
        batch = level.batch()
      }
      await breath.take()
    }
    put(batch, keptHead(this.#seals, head, next))
    await batch.put(placeKey, JSON.stringify(place)).write({ sync: true })
  }

  async #opened<T>(work: (level: Level) => Promise<T>): Promise<T> {
    const untilMs = performance.now() + lockedForMs
    for (let isNew = false; ;) {
      const level: Level = new ClassicLevel(this.#path, text)
      try {
        await level.open({ compression: true, cacheSize: 1024 ** 2, maxOpenFiles: 50 })
      } catch (error) {
        const code = codeOf(error)
        if (code === 'LEVEL_CORRUPTION' && !isNew) {
          // It is made again from the topic.
          await rm(this.#path, { recursive: true, force: true })
          isNew = true
        } else if (code !== 'LEVEL_LOCKED' || performance.now() > untilMs) throw error
        await delay(20 + Math.random() * 80)
        continue
      }
      try {
        return await work(level)
      } finally {
        await level.close()
      }
    }
  }
}

/** Returns what change sets have made in the end. */
function* changesIn(sets: readonly Changes[]): Pieces<CopyChanges> {
  const changes = new Map<string, StoredObject | undefined>()
  for (const set of sets) {
    for (const name of set.removed) changes.set(keyOf(name), undefined)
    for (const [index, object] of set.put.entries()) {
      if (index % cheapSteps === 0) yield
      changes.set(keyOf(object), object)
    }
  }
  return changes
}

/** Returns what a copy lacks of a log. `since`: the revision of the copy, or -1. */
async function differenceOf(
  level: Level,
  all: ReadonlyMap<string, StoredObject>,
  since: number,
): Promise<CopyChanges> {
  const changes = new Map<string, StoredObject | undefined>()
  for await (const key of level.keys())
    if (key !== placeKey && key !== headKey && !all.has(key)) changes.set(key, undefined)
  for (const [key, object] of all) if (object.revision > since) changes.set(key, object)
  return changes
}

function put(batch: Batch, { key, value, revision, mac, offset }: KeptRecord): void {
  batch.put(key, `${offset} ${revision} ${mac}\n${value}`)
}

function readLine(key: string, line: string): KeptRecord {
  const at = line.indexOf('\n')
  const [offset = '', revision = '', mac = ''] = line.slice(0, at).split(' ')
  return { key, value: line.slice(at + 1), revision, mac, offset: Number(offset) }
}

/** LevelDB's errors are the causes of those of the package. */
function codeOf(error: unknown): unknown {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  return typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined
}
