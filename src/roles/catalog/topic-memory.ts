import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { OneAtATime } from '../../async/one-at-a-time.ts'
import type { Pace } from '../../async/pace.ts'
import { type CopyPlace, DiskCopy, type ReadCopy } from '../../catalog-log/disk-copy.ts'
import type { ChangeSet } from '../../catalog-log/log.ts'
import { RecordSeals } from '../../catalog-log/record.ts'
import type { Config } from '../../config/schema.ts'
import { messageOf } from '../../kafka/wire/errors.ts'
import { topicNames } from '../start/settings.ts'
import { stateFolder, stateFolderPath } from '../start/state-folder.ts'
import { catalogKeys } from './keys.ts'
import type { CatalogTopicLog, LoadedTopic } from './load-topic.ts'
import { nameOf } from './memory.ts'

/** Changes that come within this time are written together, in milliseconds. */
const gatherMs = 2_000
/**
 * A copy that could not be written is tried again after this time, in milliseconds: a full disk gets room.
 */
const tryAgainMs = 60_000

/**
 * Keeps the last good copy of the catalog's topic in the state folder. If it can't be kept, the process runs
 * without it, and says so once.
 */
export class TopicMemory {
  readonly #config: Config
  readonly #log: Pick<CatalogTopicLog, 'warn'>
  readonly #path: string
  readonly #copy: DiskCopy
  readonly #writes = new OneAtATime(() => this.#write())
  readonly #stopping = new AbortController()
  readonly #againMs: number
  #loaded: (() => LoadedTopic) | undefined
  #sets: ChangeSet[] = []
  /** `#sets` are the changes since this revision. Infinite: they aren't all. */
  #since = Infinity
  #isWaiting = false
  #hasWarned = false

  constructor(config: Config, log: Pick<CatalogTopicLog, 'warn'>, pace?: Pace, againMs = tryAgainMs) {
    this.#config = config
    this.#againMs = againMs
    this.#log = log
    this.#path = join(stateFolderPath(config).folder, `${nameOf(config)}-copy`)
    const seals = new RecordSeals(topicNames(config).catalog, catalogKeys(config))
    this.#copy = new DiskCopy(this.#path, seals, pace)
  }

  /** Returns where the copy ends. `undefined`: there is none that can be read. */
  place(): Promise<CopyPlace | undefined> {
    return this.#tried(() => this.#copy.place())
  }

  /** True if there is a copy, of this or another installation. */
  get exists(): boolean {
    return existsSync(this.#path)
  }

  /** Reads the copy. Returns `undefined` if there is none that can be used. */
  async read(): Promise<ReadCopy | undefined> {
    const read = await this.#tried(() => this.#copy.read())
    if (typeof read !== 'string') return read
    this.#fail(read)
    return undefined
  }

  /** From now on, the copy is brought to what is in force. */
  begin(loaded: () => LoadedTopic): void {
    this.#loaded = loaded
    this.#writeSoon()
  }

  /** Notes a change set that was read. */
  note(set: ChangeSet): void {
    this.#sets.push(set)
    this.#writeSoon()
  }

  /** Writes what isn't written. */
  stop(): Promise<void> {
    this.#stopping.abort()
    return this.#writes.run()
  }

  #writeSoon(afterMs = gatherMs): void {
    const { signal } = this.#stopping
    if (this.#loaded === undefined || this.#isWaiting || signal.aborted) return
    this.#isWaiting = true
    void delay(afterMs, undefined, { signal, ref: false })
      .catch(() => undefined)
      .then(() => {
        this.#isWaiting = false
        return signal.aborted ? undefined : this.#writes.run()
      })
  }

  async #write(): Promise<void> {
    const loaded = this.#loaded?.()
    if (loaded === undefined) return
    const { log, topicId } = loaded
    const sets = this.#sets
    const since = this.#since
    this.#sets = []
    // If the writing fails, the next one compares the copy with all that is in force.
    this.#since = Infinity
    await this.#tried(async () => {
      stateFolder(this.#config)
      const revision = log.head?.revision ?? 0
      await this.#copy.write(log, topicId, { since, sets })
      this.#since = revision
    })
    if (this.#since === Infinity) this.#writeSoon(this.#againMs)
  }

  async #tried<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      // LevelDB's error is the cause of that of its package.
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
      this.#fail(messageOf(cause))
      return undefined
    }
  }

  #fail(reason: string): void {
    if (this.#hasWarned) return
    this.#hasWarned = true
    this.#log.warn(
      { path: this.#path, reason },
      'the copy of the catalog can not be kept or read: while its topic can not be read, a restart fails (SLUICE_STATE_FOLDER)',
    )
  }
}
