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
import { DestinationCount, nextCatalog, stateCountsOf } from '../../catalog/next-catalog.ts'
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
  /**
   * The destinations whose pauses or gone hooks the records name that were read after the last reading ended.
   * `undefined`: any destination may be concerned.
   */
  #named: Set<string> | undefined = new Set()
  readonly #listeners = new Listeners<[]>()
  /**
   * What is left of destinations that are paused or have lost hooks, so that each keeps its object and what
   * was learned about it.
   */
  readonly #left = new WeakMap<Destination, { readonly why: string; readonly left: Destination }>()
  #view: ChangedCatalog | undefined
  /** Counts the destinations that Sluice may pause. */
  readonly #thatMayPause: DestinationCount

  constructor(options: AutoPausesOptions) {
    this.#options = options
    this.#terms = autoPauseTermsOf(options.config)
    this.#thatMayPause = new DestinationCount((destination) => autoPauseMsOf(destination, this.#terms) > 0)
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
    return (
      this.#thatMayPause.in(this.whole) > 0 || this.#book.knownGone.length > 0 || this.#book.paused.size > 0
    )
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
    if (record.kind === 'gone') this.#book.takeGone(record.record, offset)
    else this.#book.take(record.record, { offset, seenMs: timestampMs })
    // A failure clock pauses nothing, and there may be thousands of them.
    const isClock = record.kind === 'pause' && record.record.kind === 'clock'
    if (!isClock) this.#named?.add(record.record.destinationId)
  }

  /** Puts into force what the records of a reading say. */
  taken(): void {
    this.gone.take(this.#book)
    const named = this.#named
    this.#named = new Set()
    if (named === undefined || named.size > 0) this.#changed(named)
  }

  /** Forgets what was read, because the topic has another log. */
  reset(): void {
    this.#book = new PauseBook()
    this.#readTo = 0
    this.#named = undefined
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
    if (this.gone.add(definition, hookId, { lastOutcome, readTo: this.#readTo }))
      this.#changed(new Set([definition.id]))
    return true
  }

  /**
   * Puts into force what is said of destinations now. `named`: those that may be concerned. `undefined`: any
   * may be.
   */
  #changed(named: ReadonlySet<string> | undefined): void {
    const before = this.#view?.catalog
    if (named === undefined) this.#view = undefined
    const { catalog } = named === undefined ? this.#current() : this.#renewed(named)
    if (catalog === before) return
    this.#tellPauses(before, catalog, named ?? catalog.destinations.keys())
    this.#listeners.tell()
  }

  #tellPauses(before: Catalog | undefined, now: Catalog, ids: Iterable<string>): void {
    const paused: string[] = []
    const resumed: string[] = []
    for (const id of ids) {
      const [was, is] = [before, now].map((catalog) => catalog?.destinations.get(id)?.state === 'auto_paused')
      if (is === true && was !== true) paused.push(id)
      if (was === true && is !== true) resumed.push(id)
    }
    if (paused.length + resumed.length === 0) return
    const count = stateCountsOf(now).auto_paused
    this.#options.log.info({ paused, resumed, count }, 'other destinations are paused than before')
  }

  #current(): ChangedCatalog {
    const read = this.#options.file.current()
    const earlier = this.#view
    if (earlier?.read === read) return earlier
    const catalog = withChangedSince(earlier, read, (destination) => this.#restrained(destination))
    this.#view = { read, catalog }
    return this.#view
  }

  /** Makes the present view anew for some destinations. The cost depends on how many these are. */
  #renewed(ids: ReadonlySet<string>): ChangedCatalog {
    const view = this.#current()
    const { read, catalog } = view
    const destinations = new Map<string, Destination>()
    for (const id of ids) {
      const destination = read.destinations.get(id)
      const left = destination && this.#restrained(destination)
      if (left !== undefined && left !== catalog.destinations.get(id)) destinations.set(id, left)
    }
    if (destinations.size === 0) return view
    const next = nextCatalog(catalog, { sources: new Map(), destinations }, read.version)
    this.#view = { read, catalog: next }
    return this.#view
  }

  #restrained(destination: Destination): Destination {
    const goneHooks = this.#goneOf(destination)
    const left = restrained(destination, { isPaused: this.#isPaused(destination), goneHooks })
    if (left === destination) return left
    const why = left.state === 'on' ? JSON.stringify(goneHooks) : left.state
    const known = this.#left.get(destination)
    if (known?.why === why) return known.left
    this.#left.set(destination, { why, left })
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
