import type { Logger } from 'pino'
import {
  autoPauseMsOf,
  type AutoPauseTerms,
  type ChangedCatalog,
  isPauseInForce,
  mayBeGone,
  restrained,
  urlsDigestOf,
  withChangedSince,
} from '../../catalog/auto-pause.ts'
import type { Catalog, Destination } from '../../catalog/catalog.ts'
import type { Config } from '../../config/schema.ts'
import type { DestinationDefinition } from '../../delivery/endpoint.ts'
import { hookContentsOf } from '../../delivery/hook-content.ts'
import { decodePauseRecord } from '../../notices/notice-record.ts'
import type { PausesPort } from '../../notices/notifier.ts'
import { PauseBook } from '../../notices/pause-book.ts'
import type { PausableDestination, PauseSituation } from '../../notices/pause-decider.ts'
import { Listeners } from '../../async/listeners.ts'
import type { KeyedRecord } from '../../message/records.ts'
import type { RoleCatalog } from '../catalog/role-catalog.ts'
import { autoPauseTermsOf } from '../start/settings.ts'
import { GoneHooks } from './gone-hooks.ts'

export type AutoPausesOptions = {
  readonly config: Config
  readonly log: Pick<Logger, 'info' | 'warn' | 'debug'>
  readonly file: Pick<RoleCatalog, 'current' | 'refused' | 'onChange'>
  /** Returns true if this worker starts no delivery at present, for one of the reasons in `Stalls`. */
  readonly isStalled: () => boolean
}

/**
 * `read` is the catalog as it was read. `catalog` is the catalog in force, which was made from `read`. `isOn`
 * is true if Sluice may pause at least one destination, and `undefined` until somebody asks.
 */
type View = ChangedCatalog & { isOn: boolean | undefined }

/**
 * Holds the destinations that Sluice has paused (`auto_paused`) and the hooks that are gone, and the catalog
 * without them. A process still sends to a paused destination until the process has read the record of the
 * pause.
 */
export class AutoPauses implements PausesPort {
  readonly #options: AutoPausesOptions
  readonly #terms: AutoPauseTerms
  readonly gone: GoneHooks
  #book = new PauseBook()
  /** The offset up to which this process has read the topic. */
  #readTo = 0
  /** True if a record about pauses or gone hooks was read after the last reading ended. */
  #isNew = false
  /** A text that stands for the destinations that are paused. */
  #pausedText = ''
  readonly #listeners = new Listeners<[]>()
  /**
   * The destinations that have lost some hooks, so that each keeps its object and what was learned about it.
   */
  readonly #left = new WeakMap<Destination, { readonly goneHooks: string; readonly left: Destination }>()
  #view: View | undefined

  constructor(options: AutoPausesOptions) {
    this.#options = options
    this.#terms = autoPauseTermsOf(options.config)
    this.gone = new GoneHooks({ log: options.log, now: Date.now })
    options.file.onChange(() => this.#listeners.tell())
  }

  /** Calls `listener` when the catalog in force has changed, by its file or by a pause. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener)
  }

  /** The catalog in force. Until the file or the pauses change, this is always the same object. */
  get catalog(): Catalog {
    return this.#current().catalog
  }

  /** The catalog in the file, in which no destination is paused by Sluice and no hook is missing. */
  get whole(): Catalog {
    return this.#options.file.current()
  }

  get goneCount(): number {
    const { destinations } = this.whole
    return [...this.gone.destinationIds].reduce((sum, id) => {
      const destination = destinations.get(id)
      return sum + (destination === undefined ? 0 : this.#goneOf(destination).length)
    }, 0)
  }

  isOn(): boolean {
    // A pause must be ended even if no destination can be paused any more. Otherwise it would apply again
    // later.
    const view = this.#current()
    view.isOn ??= [...view.read.destinations.values()].some(
      (destination) => autoPauseMsOf(destination, this.#terms) > 0,
    )
    return view.isOn || this.#book.knownGone.length > 0 || this.#book.paused.size > 0
  }

  situation(): Omit<PauseSituation, 'nowMs'> {
    const { file, isStalled } = this.#options
    const { destinations } = file.current()
    return {
      isSound: file.refused() === undefined && !isStalled(),
      destinationOf: (id) => {
        const destination = destinations.get(id)
        return destination && this.#pausable(destination)
      },
    }
  }

  /** Takes a record of the topic `notices`. Call `taken` after the last one of a reading. */
  take({ offset, key, value, timestampMs }: KeyedRecord): void {
    this.#readTo = offset + 1
    const record = decodePauseRecord(key, value)
    if (record === undefined) return
    this.#isNew = true
    if (record.kind === 'gone') this.#book.takeGone(record.record, offset)
    else this.#book.take(record.record, { offset, seenMs: timestampMs })
  }

  /** Puts into force what the records of a reading say. */
  taken(): void {
    this.gone.take(this.#book)
    if (!this.#isNew) return
    this.#isNew = false
    this.#changed()
  }

  /** Forgets what was read, because the topic has another log. */
  reset(): void {
    this.#book = new PauseBook()
    this.#readTo = 0
    this.#isNew = true
  }

  /**
   * Takes a hook that has answered 410. Returns true if the hook counts as failed for every message from now
   * on. `definition`: the destination as it was when the request was made.
   */
  answeredGone(definition: DestinationDefinition, hookId: string, lastOutcome: string): boolean {
    const destination = this.whole.destinations.get(definition.id)
    if (destination === undefined || !mayBeGone(destination, this.#terms)) return false
    const content = hookContentsOf(definition).get(hookId)
    if (hookContentsOf(destination).get(hookId) !== content) return false
    if (this.gone.add(definition, hookId, { lastOutcome, readTo: this.#readTo })) this.#changed()
    return true
  }

  #changed(): void {
    const before = this.#view?.catalog
    const { catalog } = this.#current({ isOther: true })
    const paused = [...catalog.destinations.values()].flatMap(({ id, state }) =>
      state === 'auto_paused' ? [id] : [],
    )
    const text = JSON.stringify(paused)
    if (text !== this.#pausedText)
      this.#options.log.info({ destinations: paused }, 'other destinations are paused than before')
    this.#pausedText = text
    if (catalog !== before) this.#listeners.tell()
  }

  /** `isOther`: the pauses or the gone hooks are other ones than before. */
  #current({ isOther = false } = {}): View {
    const read = this.#options.file.current()
    const earlier = isOther ? undefined : this.#view
    if (earlier?.read === read) return earlier
    const catalog = withChangedSince(earlier, read, (destination) => this.#restrained(destination))
    this.#view = { read, catalog, isOn: undefined }
    return this.#view
  }

  #restrained(destination: Destination): Destination {
    const goneHooks = this.#goneOf(destination)
    const left = restrained(destination, { isPaused: this.#isPaused(destination), goneHooks })
    if (left === destination || left.state !== 'on') return left
    const text = JSON.stringify(goneHooks)
    const known = this.#left.get(destination)
    if (known?.goneHooks === text) return known.left
    this.#left.set(destination, { goneHooks: text, left })
    return left
  }

  #isPaused(destination: Destination): boolean {
    const pause = this.#book.pauseOf(destination.id)
    return pause !== undefined && isPauseInForce(destination, pause, this.#terms)
  }

  #goneOf(destination: Destination): readonly string[] {
    return mayBeGone(destination, this.#terms) ? this.gone.of(destination) : none
  }

  #pausable(destination: Destination): PausableDestination {
    return {
      state: destination.state === 'on' && this.#isPaused(destination) ? 'auto_paused' : destination.state,
      hookIds: destination.hooks.map(({ id }) => id),
      contents: mayBeGone(destination, this.#terms) ? hookContentsOf(destination) : noContents,
      urls: urlsDigestOf(destination),
      autoPauseMs: autoPauseMsOf(destination, this.#terms),
    }
  }
}

const none: readonly string[] = []
const noContents: ReadonlyMap<string, string> = new Map()
