import { join } from 'node:path'
import { keepUnchanged, type Catalog } from '../catalog.ts'
import { faultOf, formatFaults, type Fault } from '../fault.ts'
import { type KnownCatalog, lossFaults } from './lost-entries.ts'
import { outlineOf } from '../outline.ts'
import type { ParsedCatalog } from '../parse.ts'
import { CatalogFolder } from './folder.ts'
import { readCatalogData, readCatalogText } from './reader.ts'
import { type CatalogPlace, signatureOf, type Snapshot, takeSnapshot } from './snapshot.ts'
import type { Variables } from '../variables.ts'

export type CatalogFileOptions = {
  /** The file, or the folder with a file for each destination. */
  path: string
  /** The variables of the environment that the catalog may contain, such as `${CATALOG_X}`. */
  variables?: Variables
  /**
   * A folder with a file for each variable. A variable that changes takes effect as an edit of the catalog
   * does.
   */
  variablesFolder?: string | undefined
  /**
   * The catalog that was last in force on this machine. A file that lacks too many of its entries is refused.
   * Edits are compared with the version in force.
   */
  known?: KnownCatalog | undefined
  /**
   * Address ranges that are allowed for hooks although they aren't public. `undefined`: addresses aren't
   * checked.
   */
  allowAddresses?: readonly string[] | undefined
  /**
   * Time between two checks of the file, in milliseconds. With the defaults of `everyMs` and `settleMs`, an
   * edit of an ordinary file takes effect within a second.
   */
  everyMs?: number
  /**
   * Time for which the file must be unchanged before it is read, in milliseconds. Without this time, Sluice
   * could read a half-written file that looks complete.
   */
  settleMs?: number
  /**
   * Time after which an unchanged file is read again if its reader failed, for example because no file or
   * thread could be opened, in milliseconds.
   */
  againMs?: number
  /** Parses the text of a new version of the file. By default, a thread does this for a long text. */
  readText?: typeof readCatalogText
  /**
   * Called with a new version of the catalog. The new version shares the objects of unchanged sources and
   * destinations with the previous version, `before`. At the time of the call, `current()` already returns
   * the new one.
   */
  onChange(catalog: Catalog, before: Catalog): void
  /**
   * Called once for each edit that was refused, with all faults of the file. The previous catalog stays in
   * force. `isPart`: the faults are those of some files of a folder or of variables, and the others are in
   * force.
   */
  onRefused(faults: readonly Fault[], isPart: boolean): void
}

/**
 * The refusal of the present file. `faults`: the faults of the file. `sinceMs`: the time since which no
 * version of the file was accepted, in epoch milliseconds. `isPart`: the faults are those of some files of a
 * folder or of variables, and the others are in force.
 */
export type CatalogRefusal = {
  readonly sinceMs: number
  readonly faults: readonly Fault[]
  readonly isPart?: boolean
}

export type CatalogFile = {
  /** Returns the last version of the catalog that had no faults. */
  current(): Catalog
  /**
   * Returns the refusal of the present file, or of some files of a folder or of variables. Returns
   * `undefined` if `current()` is the version that is in the file.
   */
  refused(): CatalogRefusal | undefined
  /** Stops at once. After this call, neither `onChange` nor `onRefused` is called. */
  stop(): void
}

export type OpenedCatalogFile =
  | { ok: true; file: CatalogFile }
  | { ok: false; faults: readonly Fault[]; message: string }

/**
 * Time after which a file that changes all the time is refused, in milliseconds. The refusal reports the
 * problem to the operator.
 */
const restlessMs = 5_000
/** The longest pause between two looks at a folder because of its size, in milliseconds. */
const mostRestMs = 5_000

/**
 * Reads the catalog from a file, and follows the edits of the file. The file is polled, because a ConfigMap
 * is changed by replacing a symbolic link, and a watcher of the file doesn't notice this. If the file has
 * faults at the start, the result has a message that lists every fault and shows what a catalog looks like.
 */
export async function openCatalogFile(options: CatalogFileOptions): Promise<OpenedCatalogFile> {
  const { path, known } = options
  const snapshot = await takeSnapshot(placeOf(options))
  if (!snapshot.ok) return refusal(path, [snapshot.fault], example)
  const reading = new SnapshotReading(options)
  const parsed = await reading.read(snapshot)
  if (!parsed.ok) return refusal(path, parsed.faults, example)
  const losses = known === undefined ? [] : lossFaults(path, known, parsed.catalog, parsed.expected)
  if (losses.length > 0) return refusal(path, losses)
  parsed.keep()
  return { ok: true, file: new FollowedFile(options, { parsed, snapshot, reading }) }
}

function placeOf({ path, variables = {}, variablesFolder }: CatalogFileOptions): CatalogPlace {
  return { path, variables, variablesFolder }
}

type ReadSnapshot =
  | (Extract<ParsedCatalog, { ok: true }> & {
      /** The faults of files that are left out: files of a folder, and files of variables. */
      readonly left: readonly Fault[]
      /** Call this once the catalog is in force. */
      readonly keep: () => void
    })
  | { readonly ok: false; readonly faults: readonly Fault[]; readonly isReaderFailure?: boolean }

/** Parses the versions of a file or a folder. */
class SnapshotReading {
  readonly #options: CatalogFileOptions
  readonly #folder = new CatalogFolder()
  /** The variables of the file that is in force. */
  #variables: Variables | undefined

  constructor(options: CatalogFileOptions) {
    this.#options = options
  }

  /**
   * Parses a snapshot. If the reader fails, returns its error as a fault, and sets `isReaderFailure`: then
   * the text may have no faults.
   */
  async read({ text, files, variables, variableFaults }: Snapshot): Promise<ReadSnapshot> {
    const { path, variablesFolder, allowAddresses, readText = readCatalogText } = this.#options
    const named = (fault: Fault): Fault =>
      variablesFolder === undefined ? fault : withFile(fault, variablesFolder, variableFaults)
    try {
      if (files === undefined) {
        const formerVariables = this.#variables
        const parsed = await readText(text, { file: path, variables, formerVariables, allowAddresses })
        const { kept = [] } = parsed
        if (!parsed.ok) return { ok: false, faults: [...kept, ...parsed.faults].map(named) }
        const keep = (): void => void (this.#variables = parsed.variables ?? variables)
        return { ...parsed, left: kept.map(named), keep }
      }
      const options = { path, variables, allowAddresses, readData: readCatalogData }
      const parsed = await this.#folder.read(files, options)
      if (!parsed.ok) return { ok: false, faults: parsed.faults.map(named) }
      const { inForce, left } = parsed
      return { ...parsed, left: left.map(named), keep: () => this.#folder.keep(inForce) }
    } catch (error) {
      const fault = faultOf(path, 'could not be read', String(error))
      return { ok: false, faults: [fault], isReaderFailure: true }
    }
  }
}

/** Names the file of a variable that isn't set. `unusable`: why files can't be used. */
function withFile(fault: Fault, folder: string, unusable?: ReadonlyMap<string, Fault>): Fault {
  if (fault.variable === undefined) return fault
  const file = join(folder, fault.variable)
  const { problem: what = 'is missing or empty', advice = 'write the value into this file' } =
    unusable?.get(fault.variable) ?? {}
  return { ...fault, problem: `names the variable ${fault.variable}, and the file ${file} ${what}`, advice }
}

/** What a file was when it was opened. */
type Opened = {
  readonly parsed: Extract<ReadSnapshot, { ok: true }>
  readonly snapshot: Snapshot
  readonly reading: SnapshotReading
}

class FollowedFile implements CatalogFile {
  readonly #options: CatalogFileOptions &
    Required<Pick<CatalogFileOptions, 'everyMs' | 'settleMs' | 'againMs'>>
  readonly #place: CatalogPlace
  readonly #reading: SnapshotReading
  /** The last version of the file that was accepted or refused. */
  #judged: { signature: string; digest: string }
  /** A change of the file that was noticed but has not been read yet. */
  #pending: { signature: string; sinceMs: number } | undefined
  /** The time at which the file is read again although it hasn't changed, because its reader failed. */
  #readAgainAtMs = Infinity
  #currentDigest: string
  #current: Catalog
  #refused: CatalogRefusal | undefined
  /** The refusal of the files that the catalog in force lacks. */
  #left: CatalogRefusal | undefined
  readonly #isFolder: boolean
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(options: CatalogFileOptions, { parsed, snapshot, reading }: Opened) {
    const { signature, digest } = snapshot
    this.#options = { everyMs: 300, settleMs: 100, againMs: 30_000, ...options }
    this.#place = placeOf(options)
    this.#reading = reading
    this.#current = parsed.catalog
    this.#currentDigest = digest
    this.#judged = { signature, digest }
    this.#left = refusalOf(parsed.left, undefined)
    this.#refused = this.#left
    this.#isFolder = snapshot.files !== undefined
    this.#lookIn(this.#options.everyMs)
  }

  current(): Catalog {
    return this.#current
  }

  refused(): CatalogRefusal | undefined {
    return this.#refused
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  #lookIn(ms: number): void {
    if (this.#isStopped) return
    this.#timer = setTimeout(() => void this.#look(), ms)
    this.#timer.unref()
  }

  /** Checks the file once. When this check has ended, plans the next one. */
  async #look(): Promise<void> {
    const { everyMs, settleMs } = this.#options
    const startedMs = performance.now()
    let tookMs = 0
    try {
      const signature = await signatureOf(this.#place)
      tookMs = performance.now() - startedMs
      if (this.#isStopped) return
      const isUnchanged = signature === this.#judged.signature
      if (isUnchanged && performance.now() < this.#readAgainAtMs) this.#pending = undefined
      else if (signature === this.#pending?.signature) await this.#read()
      else this.#wait(signature)
    } finally {
      this.#lookIn(Math.max(this.#pending === undefined ? everyMs : settleMs, this.#restMs(tookMs)))
    }
  }

  /** Looking at a folder of thousands of files takes long, and may take a twentieth of the time. */
  #restMs(tookMs: number): number {
    return this.#isFolder ? Math.min(20 * tookMs, mostRestMs) : 0
  }

  /**
   * Remembers that the file has changed since the previous check. The file isn't read yet, because its writer
   * may not have finished.
   */
  #wait(signature: string): void {
    const sinceMs = this.#pending?.sinceMs ?? performance.now()
    this.#pending = { signature, sinceMs }
    if (performance.now() - sinceMs <= restlessMs) return
    // If this was the last change, the file is read at the next checks.
    this.#refuse({ signature: 'none', digest: 'restless' }, [
      faultOf(this.#options.path, 'changes all the time', 'write it once, or move a finished file over it'),
    ])
  }

  /**
   * Reads the file, and accepts or refuses it. If the file changes while it is read, the change stays
   * pending.
   */
  async #read(): Promise<void> {
    const snapshot = await takeSnapshot(this.#place)
    if (this.#isStopped || snapshot.signature !== this.#pending?.signature) return
    if (!snapshot.ok) {
      // A file that can't be opened or read now may be readable at the next check, even if its signature is
      // the same.
      const signature = snapshot.isLasting ? snapshot.signature : 'none'
      const { file, problem } = snapshot.fault
      this.#refuse({ signature, digest: `${file} ${problem}` }, [snapshot.fault])
    } else if (snapshot.digest === this.#currentDigest) {
      this.#settle(snapshot)
      this.#refused = this.#left
    } else if (snapshot.digest === this.#judged.digest) {
      this.#settle(snapshot)
    } else {
      const read = await this.#reading.read(snapshot)
      if (!this.#isStopped) this.#judge(snapshot, read)
    }
  }

  #judge(snapshot: Snapshot, read: ReadSnapshot): void {
    if (!read.ok && read.isReaderFailure === true) {
      // The text may have no faults, so its digest isn't remembered as refused.
      this.#refuse({ signature: snapshot.signature, digest: 'reader failure' }, read.faults)
      this.#readAgainAtMs = performance.now() + this.#options.againMs
      return
    }
    const faults = read.ok ? this.#lossesOf(read) : read.faults
    if (read.ok && faults.length === 0) this.#take(snapshot, read)
    else this.#refuse(snapshot, faults)
  }

  #lossesOf({ catalog, expected }: Extract<ParsedCatalog, { ok: true }>): readonly Fault[] {
    const inForce = { outline: outlineOf(this.#current), of: 'the catalog in force', ifAnother: '' }
    return lossFaults(this.#options.path, inForce, catalog, expected)
  }

  #settle({ signature, digest }: { signature: string; digest: string }): void {
    this.#judged = { signature, digest }
    this.#pending = undefined
    this.#readAgainAtMs = Infinity
  }

  #take(snapshot: Snapshot, { catalog, left, keep }: Extract<ReadSnapshot, { ok: true }>): void {
    const before = this.#current
    this.#settle(snapshot)
    this.#current = keepUnchanged(before, catalog)
    this.#currentDigest = snapshot.digest
    this.#left = refusalOf(left, this.#refused)
    this.#refused = this.#left
    keep()
    if (this.#current !== before) this.#options.onChange(this.#current, before)
    if (this.#refused !== undefined) this.#options.onRefused(this.#refused.faults, true)
  }

  #refuse(judged: { signature: string; digest: string }, faults: readonly Fault[]): void {
    const isNews = judged.digest !== this.#judged.digest
    this.#settle(judged)
    if (!isNews) return
    this.#refused = { sinceMs: this.#refused?.sinceMs ?? Date.now(), faults }
    this.#options.onRefused(faults, false)
  }
}

/** `before`: the refusal until now, which says since when. */
function refusalOf(
  faults: readonly Fault[] = [],
  before: CatalogRefusal | undefined,
): CatalogRefusal | undefined {
  return faults.length === 0 ? undefined : { sinceMs: before?.sinceMs ?? Date.now(), faults, isPart: true }
}

const example = `sources:
  - id: shop
destinations:
  - id: crm
    sources: [shop]
    hooks:
      - url: https://example.com/hook
`

/** Refuses a file at the start. `shown`: what a catalog looks like. */
function refusal(path: string, faults: readonly Fault[], shown?: string): OpenedCatalogFile {
  const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`
  const message = `The catalog ${path} has ${count}:\n${formatFaults(faults)}`
  const more = shown === undefined ? '' : `\n\nA catalog looks like this:\n\n${shown}`
  return { ok: false, faults, message: message + more }
}
