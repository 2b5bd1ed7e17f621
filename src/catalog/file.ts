import { createHash } from 'node:crypto'
import { open, stat } from 'node:fs/promises'
import { keepUnchanged, type Catalog } from './catalog.ts'
import { formatFaults, type Fault } from './fault.ts'
import type { ParsedCatalog } from './parse.ts'
import { readCatalogText } from './reader.ts'
import type { Variables } from './variables.ts'

export type CatalogFileOptions = {
  path: string
  /** The values of the variables that the catalog may contain, such as `${CATALOG_X}`. */
  variables?: Variables
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
   * destinations with the previous version. At the time of the call, `current()` already returns the new one.
   */
  onChange(catalog: Catalog): void
  /**
   * Called once for each edit that was refused, with all faults of the file. The previous catalog stays in
   * force.
   */
  onRefused(faults: readonly Fault[]): void
}

/**
 * The refusal of the present file. `faults`: the faults of the file. `sinceMs`: the time since which no
 * version of the file was accepted, in epoch milliseconds.
 */
export type CatalogRefusal = { readonly sinceMs: number; readonly faults: readonly Fault[] }

export type CatalogFile = {
  /** Returns the last version of the catalog that had no faults. */
  current(): Catalog
  /**
   * Returns the refusal of the present file. Returns `undefined` if `current()` is the version that is in the
   * file.
   */
  refused(): CatalogRefusal | undefined
  /** Stops at once. After this call, neither `onChange` nor `onRefused` is called. */
  stop(): void
}

export type OpenedCatalogFile =
  | { ok: true; file: CatalogFile }
  | { ok: false; faults: readonly Fault[]; message: string }

/** The limit on a file of JSON. `parseCatalog` has a lower limit for YAML. */
const maxBytes = 64 * 1024 * 1024
/**
 * Time after which a file that changes all the time is refused, in milliseconds. The refusal reports the
 * problem to the operator.
 */
const restlessMs = 5_000

/**
 * Reads the catalog from a file, and follows the edits of the file. The file is polled, because a ConfigMap
 * is changed by replacing a symbolic link, and a watcher of the file doesn't notice this. If the file has
 * faults at the start, the result has a message that lists every fault and shows what a catalog looks like.
 */
export async function openCatalogFile(options: CatalogFileOptions): Promise<OpenedCatalogFile> {
  const { path, variables = {}, allowAddresses } = options
  const refuse = (faults: readonly Fault[]) => ({
    ok: false as const,
    faults,
    message: startMessage(path, faults),
  })
  const snapshot = await readWhole(path)
  if (!snapshot.ok) return refuse([snapshot.fault])
  const { readText = readCatalogText } = options
  const parsed = await orFault(readText, snapshot.text, { file: path, variables, allowAddresses })
  return parsed.ok
    ? { ok: true, file: new FollowedFile(options, parsed.catalog, snapshot) }
    : refuse(parsed.faults)
}

class FollowedFile implements CatalogFile {
  readonly #options: Required<CatalogFileOptions>
  /** The last version of the file that was accepted or refused. */
  #judged: { signature: string; digest: string }
  /** A change of the file that was noticed but has not been read yet. */
  #pending: { signature: string; sinceMs: number } | undefined
  /** The time at which the file is read again although it hasn't changed, because its reader failed. */
  #readAgainAtMs = Infinity
  #currentDigest: string
  #current: Catalog
  #refused: CatalogRefusal | undefined
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(options: CatalogFileOptions, catalog: Catalog, { signature, digest }: Snapshot) {
    const times = { everyMs: 300, settleMs: 100, againMs: 30_000 }
    const defaults = { variables: {}, allowAddresses: undefined, readText: readCatalogText, ...times }
    this.#options = { ...defaults, ...options }
    this.#current = catalog
    this.#currentDigest = digest
    this.#judged = { signature, digest }
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
    const { path, everyMs, settleMs } = this.#options
    try {
      const signature = await signatureOf(path)
      if (this.#isStopped) return
      const isUnchanged = signature === this.#judged.signature
      if (isUnchanged && performance.now() < this.#readAgainAtMs) this.#pending = undefined
      else if (signature === this.#pending?.signature) await this.#read()
      else this.#wait(signature)
    } finally {
      this.#lookIn(this.#pending === undefined ? everyMs : settleMs)
    }
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
    const { path, variables, allowAddresses, againMs, readText } = this.#options
    const snapshot = await readWhole(path)
    if (this.#isStopped || snapshot.signature !== this.#pending?.signature) return
    if (!snapshot.ok) {
      // A file that can't be opened or read now may be readable at the next check, even if its signature is
      // the same.
      const signature = snapshot.isLasting ? snapshot.signature : 'none'
      this.#refuse({ signature, digest: snapshot.fault.problem }, [snapshot.fault])
    } else if (snapshot.digest === this.#currentDigest) {
      this.#settle(snapshot)
      this.#refused = undefined
    } else if (snapshot.digest === this.#judged.digest) {
      this.#settle(snapshot)
    } else {
      const options = { file: path, variables, allowAddresses }
      const parsed = await orFault(readText, snapshot.text, options)
      if (this.#isStopped) return
      if (parsed.ok) this.#take(snapshot, parsed.catalog)
      else if (parsed.isReaderFailure !== true) this.#refuse(snapshot, parsed.faults)
      else {
        // The text may have no faults, so its digest isn't remembered as refused.
        this.#refuse({ signature: snapshot.signature, digest: 'reader failure' }, parsed.faults)
        this.#readAgainAtMs = performance.now() + againMs
      }
    }
  }

  #settle({ signature, digest }: { signature: string; digest: string }): void {
    this.#judged = { signature, digest }
    this.#pending = undefined
    this.#readAgainAtMs = Infinity
  }

  #take(snapshot: Snapshot, catalog: Catalog): void {
    this.#settle(snapshot)
    this.#current = keepUnchanged(this.#current, catalog)
    this.#currentDigest = snapshot.digest
    this.#refused = undefined
    this.#options.onChange(this.#current)
  }

  #refuse(judged: { signature: string; digest: string }, faults: readonly Fault[]): void {
    const isNews = judged.digest !== this.#judged.digest
    this.#settle(judged)
    if (!isNews) return
    this.#refused = { sinceMs: this.#refused?.sinceMs ?? Date.now(), faults }
    this.#options.onRefused(faults)
  }
}

/**
 * Calls `readText`. If it rejects, returns the error as a fault, and sets `isReaderFailure`: then the text
 * may have no faults.
 */
async function orFault(
  readText: typeof readCatalogText,
  text: string,
  options: Parameters<typeof readCatalogText>[1],
): Promise<ParsedCatalog & { readonly isReaderFailure?: boolean }> {
  return readText(text, options).catch((error: unknown) => ({
    ok: false,
    faults: [faultOf(options.file, 'could not be read', String(error))],
    isReaderFailure: true,
  }))
}

type Snapshot = { signature: string; text: string; digest: string }

type Unreadable = {
  signature: string
  fault: Fault
  /** True if the file will stay unreadable until it is edited. */
  isLasting: boolean
}

/**
 * Reads the whole file. Returns the fault if the file can't be read. If the file changes while it is read,
 * the signature in the result is `changing`.
 */
async function readWhole(path: string): Promise<({ ok: true } & Snapshot) | ({ ok: false } & Unreadable)> {
  let signature = 'none'
  const refuse = (problem: string, advice: string, isLasting = true) => ({
    ok: false as const,
    signature,
    fault: faultOf(path, problem, advice),
    isLasting,
  })
  try {
    const stats = await stat(path, { bigint: true })
    signature = signatureFrom(stats)
    if (!stats.isFile()) return refuse('is not a file', 'name a file')
    if (stats.size > maxBytes) return refuse('is larger than 64 MiB', 'write less')
    // The file is opened only once. So if a symbolic link is replaced at this time, the content isn't a mix
    // of two files.
    await using handle = await open(path)
    const bytes = await handle.readFile()
    const isSame = signatureFrom(await handle.stat({ bigint: true })) === signature
    const digest = createHash('sha256').update(bytes).digest('hex')
    return { ok: true, signature: isSame ? signature : 'changing', text: utf8.decode(bytes), digest }
  } catch (error) {
    if (error instanceof TypeError) return refuse('is not UTF-8', 'save it as UTF-8')
    const code = errorCode(error)
    if (code === undefined) throw error
    if (signature === 'none') signature = code
    return refuse(
      `cannot be read (${code})`,
      code === 'ENOENT' ? 'write it, or name another' : 'check the file',
      false,
    )
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Returns a text that changes with every edit of the file. An edit may replace the file (an editor), replace
 * a link (a ConfigMap) or replace the content (`cp`).
 */
async function signatureOf(path: string): Promise<string> {
  try {
    return signatureFrom(await stat(path, { bigint: true }))
  } catch (error) {
    const code = errorCode(error)
    if (code === undefined) throw error
    return code
  }
}

type FileStats = { dev: bigint; ino: bigint; size: bigint; mtimeNs: bigint; ctimeNs: bigint }

function signatureFrom({ dev, ino, size, mtimeNs, ctimeNs }: FileStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
}

function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

function faultOf(file: string, problem: string, advice: string): Fault {
  return { file, line: undefined, column: undefined, path: '', problem, advice }
}

const example = `sources:
  - id: shop
destinations:
  - id: crm
    sources: [shop]
    hooks:
      - url: https://example.com/hook
`

function startMessage(path: string, faults: readonly Fault[]): string {
  const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`
  return `The catalog ${path} has ${count}:\n${formatFaults(faults)}\n\nA catalog looks like this:\n\n${example}`
}
