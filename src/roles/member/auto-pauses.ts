import type { Logger } from 'pino'
import {
  autoPauseMsOf,
  type AutoPauseTerms,
  isPauseInForce,
  urlsDigestOf,
  withAutoPaused,
} from '../../catalog/auto-pause.ts'
import type { Catalog, Destination } from '../../catalog/catalog.ts'
import type { Config } from '../../config/schema.ts'
import type { PausesPort } from '../../notices/notifier.ts'
import type { PausableDestination, PauseSituation } from '../../notices/pause-decider.ts'
import type { Pause } from '../../notices/pause-record.ts'
import { Listeners } from '../../async/listeners.ts'
import type { RoleCatalog } from '../start/open-catalog.ts'
import { autoPauseTermsOf } from '../start/settings.ts'

export type AutoPausesOptions = {
  readonly config: Config
  readonly log: Pick<Logger, 'info'>
  readonly file: Pick<RoleCatalog, 'current' | 'refused' | 'onChange'>
  /** Returns true if this worker starts no delivery at present, for one of the reasons in `Stalls`. */
  readonly isStalled: () => boolean
}

/**
 * `read` is the catalog in the file. `catalog` is the catalog in force, which was made from `read`. `isOn` is
 * true if Sluice may pause at least one destination.
 */
type View = { readonly read: Catalog; readonly catalog: Catalog; readonly isOn: boolean }

/**
 * Holds the destinations that Sluice has paused (`auto_paused`), and the catalog in which they have this
 * state. A process still sends to a paused destination until the process has read the record of the pause.
 */
export class AutoPauses implements Omit<PausesPort, 'terms'> {
  readonly #options: AutoPausesOptions
  readonly #terms: AutoPauseTerms
  #paused: ReadonlyMap<string, Pause> = new Map()
  readonly #listeners = new Listeners<[]>()
  #view: View | undefined

  constructor(options: AutoPausesOptions) {
    this.#options = options
    this.#terms = autoPauseTermsOf(options.config)
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

  isOn(): boolean {
    return this.#current().isOn
  }

  situation(): Omit<PauseSituation, 'nowMs'> {
    const { file, isStalled } = this.#options
    const { destinations } = this.catalog
    return {
      isSound: file.refused() === undefined && !isStalled(),
      destinationOf: (id) => {
        const destination = destinations.get(id)
        return destination && this.#pausable(destination)
      },
    }
  }

  /** Takes over the pauses that haven't ended, by destination. */
  take(paused: ReadonlyMap<string, Pause>): void {
    const before = this.#paused
    this.#paused = paused
    const isSame =
      before.size === paused.size && [...paused].every(([id, { atMs }]) => before.get(id)?.atMs === atMs)
    if (isSame) return
    this.#view = undefined
    this.#options.log.info({ destinations: [...paused.keys()] }, 'other destinations are paused than before')
    this.#listeners.tell()
  }

  #current(): View {
    const read = this.#options.file.current()
    if (this.#view?.read === read) return this.#view
    const catalog = withAutoPaused(read, (destination) => this.#isPaused(destination))
    const isOn = [...read.destinations.values()].some(
      (destination) => autoPauseMsOf(destination, this.#terms) > 0,
    )
    this.#view = { read, catalog, isOn }
    return this.#view
  }

  #isPaused(destination: Destination): boolean {
    const pause = this.#paused.get(destination.id)
    return pause !== undefined && isPauseInForce(destination, pause, this.#terms)
  }

  #pausable(destination: Destination): PausableDestination {
    return {
      state: destination.state,
      hookIds: destination.hooks.map(({ id }) => id),
      urls: urlsDigestOf(destination),
      autoPauseMs: autoPauseMsOf(destination, this.#terms),
    }
  }
}
