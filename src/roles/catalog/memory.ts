import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { OneAtATime } from '../../async/one-at-a-time.ts'
import type { KnownCatalog } from '../../catalog/file/lost-entries.ts'
import type { CatalogOutline } from '../../catalog/outline.ts'
import { readOutline, writeOutline } from '../../catalog/file/outline-file.ts'
import type { Config } from '../../config/schema.ts'
import { stateFolder, stateFolderPath } from '../start/state-folder.ts'

/**
 * Keeps the outline of the catalog in force in the state folder, so that a restart notices if the catalog
 * file was cut off meanwhile. If the outline can't be kept, the process runs without it, and says so once.
 */
export class CatalogMemory {
  readonly #config: Config
  readonly #warn: (about: { file: string; reason: string }, message: string) => void
  readonly #path: string
  /** The outline that is written next. `undefined` if none is to be written. */
  #next: (() => CatalogOutline) | undefined
  readonly #writes = new OneAtATime(() => this.#write())
  #hasWarned = false

  /** Calls `warn` once if the outline can't be read or written. */
  constructor(config: Config, warn: (about: { file: string; reason: string }, message: string) => void) {
    this.#config = config
    this.#warn = warn
    this.#path = join(stateFolderPath(config).folder, `${nameOf(config)}.json`)
  }

  /** Returns the catalog that was last in force with this state folder. Creates no folder. */
  async known(): Promise<KnownCatalog | undefined> {
    try {
      if (!existsSync(this.#path)) return undefined
      stateFolder(this.#config)
    } catch (error) {
      this.#fail(error)
      return undefined
    }
    const outline = await readOutline(this.#path)
    if (typeof outline === 'string') this.#fail(outline)
    if (outline === undefined || typeof outline === 'string') return undefined
    const of = 'the catalog that was last in force here'
    return { outline, of, ifAnother: `; if this is another catalog, remove ${this.#path}` }
  }

  /**
   * Writes the outline of the catalog in force. If another one is being written, only the last outline that
   * was given meanwhile is made and written.
   */
  keep(outline: () => CatalogOutline): void {
    this.#next = outline
    void this.#writes.run()
  }

  /** Resolves once everything is written. */
  idle(): Promise<void> {
    return this.#writes.run()
  }

  async #write(): Promise<void> {
    const outline = this.#next
    if (outline === undefined) return
    this.#next = undefined
    try {
      stateFolder(this.#config)
      await writeOutline(this.#path, outline())
    } catch (error) {
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    if (this.#hasWarned) return
    this.#hasWarned = true
    const reason = error instanceof Error ? error.message : String(error)
    this.#warn(
      { file: this.#path, reason },
      'the outline of the catalog can not be kept: if the catalog file is cut off, a restart does not notice (SLUICE_STATE_FOLDER)',
    )
  }
}

/**
 * The name of what is kept of a catalog. Without a setting, all projects of this user share a state folder in
 * the temporary folder. There, each catalog has a name of its own.
 */
export function nameOf({ state, catalog, kafka }: Config): string {
  if (state.folder !== undefined) return 'catalog'
  const place = catalog.source === 'topic' ? `topic ${kafka.topicPrefix}` : resolve(catalog.file)
  const digest = createHash('sha256').update(place).digest('hex')
  return `catalog-${digest.slice(0, 12)}`
}
