import { setTimeout as delay } from 'node:timers/promises'
import type { Catalog } from '../../catalog/catalog.ts'
import type { Config } from '../../config/schema.ts'
import { assess, type AssessedDestination } from './destination-conditions.ts'
import type { KnownHealth } from './health-reading.ts'
import { type Pauses, pausesOf } from './known-pauses.ts'
import type { PauseDesk } from './pause-desk.ts'

/** What is known of the workers and destinations at one time, except for the catalog. */
export type Picture = {
  /** The time of the picture, in epoch milliseconds. Its ages and ends are counted from here. */
  readonly asOfMs: number
  readonly pauses: Pauses
  readonly health: KnownHealth
}

type Desk = Pick<PauseDesk, 'paused' | 'gone' | 'health'>

/** Reads the present picture. Rejects when Kafka doesn't answer. */
export async function readPicture(desk: Desk, config: Config): Promise<Picture> {
  const [paused, gone, health] = await Promise.all([desk.paused(), desk.gone(), desk.health()])
  return { asOfMs: health.nowMs, pauses: pausesOf(paused, gone, config), health }
}

export type FollowedOptions = {
  readonly desk: Desk
  readonly config: Config
  readonly log: { info(fields: object, text: string): void; warn(fields: object, text: string): void }
}

/** Time between two readings, in milliseconds. */
const everyMs = 2_000

/** The last picture that could be read. While Kafka doesn't answer, it gets older. */
export class FollowedPicture {
  readonly #options: FollowedOptions
  readonly #stopping = new AbortController()
  readonly #following: Promise<void>
  #last: Picture | undefined
  #reading: Promise<Picture> | undefined
  #isFailing = false
  #assessed:
    | {
        readonly of: Picture
        readonly catalog: Catalog
        readonly changes: number | undefined
        readonly all: readonly AssessedDestination[]
      }
    | undefined

  constructor(options: FollowedOptions) {
    this.#options = options
    this.#following = this.#follow()
  }

  /** Returns the last picture without waiting. Only the first call waits, and rejects if it can't be read. */
  async current(): Promise<Picture> {
    return this.#last ?? this.renew()
  }

  /** Reads the picture anew, because something was changed. */
  async renew(): Promise<Picture> {
    const reading = readPicture(this.#options.desk, this.#options.config)
    this.#reading = reading
    const picture = await reading
    // A reading that began earlier may end later.
    if (picture.asOfMs >= (this.#last?.asOfMs ?? 0)) this.#last = picture
    return picture
  }

  /** Returns the destinations in the order of their ids. */
  assessed(catalog: Catalog, picture: Picture): readonly AssessedDestination[] {
    const known = this.#assessed
    // The board of a picture changes while the next picture is read.
    const changes = picture.health.board?.changes
    if (known?.of === picture && known.catalog === catalog && known.changes === changes) return known.all
    const all = assess(catalog, picture.pauses, picture.health)
    this.#assessed = { of: picture, catalog, changes, all }
    return all
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#following
    await this.#reading?.catch(() => undefined)
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.renew().then(
        () => this.#tell(undefined),
        (error: unknown) => this.#tell(error),
      )
      await delay(everyMs, undefined, { signal }).catch(() => undefined)
    }
  }

  #tell(error: unknown): void {
    const isFailing = error !== undefined
    if (isFailing === this.#isFailing || this.#stopping.signal.aborted) return
    this.#isFailing = isFailing
    const { log } = this.#options
    if (isFailing)
      log.warn(
        { err: error },
        'what workers tell of destinations can not be read: answers have an older asOf',
      )
    else log.info({}, 'what workers tell of destinations is read again')
  }
}
