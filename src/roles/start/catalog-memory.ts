import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { CatalogOutline, KnownCatalog } from '../../catalog/outline.ts'
import { readOutline, writeOutline } from '../../catalog/outline-file.ts'
import type { Config } from '../../config/schema.ts'
import { stateFolder, stateFolderPath } from './state-folder.ts'

/**
 * Keeps the outline of the catalog in force in the state folder, so that a restart notices if the catalog
 * file was cut off meanwhile. If the outline can't be kept, the process runs without it, and says so once.
 */
export class CatalogMemory {
  readonly #config: Config
  readonly #warn: (about: { file: string; reason: string }, message: string) => void
  readonly #path: string
  #writing: Promise<void> = Promise.resolve()
  #hasWarned = false

  /** Calls `warn` once if the outline can't be read or written. */
  constructor(config: Config, warn: (about: { file: string; reason: string }, message: string) => void) {
    this.#config = config
    this.#warn = warn
    this.#path = join(stateFolderPath(config).folder, outlineName(config))
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

  /** Writes the outline of the catalog in force, after those that are being written. */
  keep(outline: CatalogOutline): void {
    this.#writing = this.#writing.then(async () => {
      try {
        stateFolder(this.#config)
        await writeOutline(this.#path, outline)
      } catch (error) {
        this.#fail(error)
      }
    })
  }

  /** Resolves once everything is written. */
  idle(): Promise<void> {
    return this.#writing
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
 * The name of the outline's file. Without a setting, all projects of this user share a state folder in the
 * temporary folder. There, each catalog file has an outline of its own.
 */
function outlineName({ state, catalog }: Config): string {
  if (state.folder !== undefined) return 'catalog.json'
  const digest = createHash('sha256').update(resolve(catalog.file)).digest('hex')
  return `catalog-${digest.slice(0, 12)}.json`
}
