import { createHash } from 'node:crypto'
import { createAddressPolicy } from '../address/policy.ts'
import type { MessageFilter } from '../message/message-filter.ts'
import { parseTimestamp } from '../message/timestamp.ts'
import { readAutoPause } from './auto-pause.ts'
import { createCatalog, type Catalog, type Destination, type Hook, type Source } from './catalog.ts'
import { idAt } from './entry-id.ts'
import { readBatch } from './features/batch.ts'
import { checkDefinition } from './schema-faults.ts'
import { buildLogin } from './features/hook-login.ts'
import { buildTls } from './features/hook-tls.ts'
import { readTimeout } from './features/request-timeout.ts'
import { formatPath, maxFaults, type Fault, type Path } from './fault.ts'
import { type ExpectedCounts, isEmptyDocument } from './expected.ts'
import type { Breach } from './hook-rules.ts'
import { readHookUrl } from './hook-url.ts'
import { looksLikeJson, readJson } from './json.ts'
import { checkRules, type FaultSink } from './rules.ts'
import type { CatalogDefinition } from './catalog-schema.ts'
import { fillIn, type Variables } from './variables.ts'
import { readYaml, type YamlText } from './yaml.ts'

export type ParsedCatalog =
  | {
      ok: true
      catalog: Catalog
      /** The numbers of entries that the text says it has. It has as many. */
      expected?: ExpectedCounts | undefined
    }
  | { ok: false; faults: readonly Fault[] }

/**
 * Parses the text of a catalog, YAML or JSON. Returns the catalog, or its faults. If the text has a syntax
 * error, only syntax errors are returned, because there is no data to check. Otherwise the first 1,000 faults
 * are returned. Each fault has its line and column. In a JSON text of more than 2 Mi characters, a fault of
 * the data has only its path. The faults quote no URL, secret or header value. Never throws.
 *
 * `file` is the file name that the faults get. `variables` are the values of variables such as
 * `${CATALOG_X}`. `allowAddresses` are address ranges that are allowed for hooks although they aren't public.
 * A process that delivers must pass `allowAddresses`. If it is absent, no address is checked.
 */
export function parseCatalog(
  text: string,
  {
    file,
    variables = {},
    allowAddresses,
  }: { file: string; variables?: Variables; allowAddresses?: readonly string[] | undefined },
): ParsedCatalog {
  const options = { file, variables, allowAddresses }
  if (looksLikeJson(text)) {
    const read = readJson(text)
    const parsed = parseRead(read, text, options)
    // A short text may be YAML in braces, and the reader of YAML finds the places of all faults. But for each
    // MiB it takes 1.2 s and 130 MB of memory.
    if (parsed.ok || text.length > maxInBraces) return parsed
    // The reader of YAML says of faulty JSON neither the path nor the id.
    if (!read.ok && file.endsWith('.json')) return parsed
  }
  if (text.length > maxYaml) {
    const problem = 'is a YAML text of more than 16 Mi characters'
    const advice = 'write it as JSON that begins with {, which Sluice reads up to 64 MiB'
    return { ok: false, faults: [{ file, line: undefined, column: undefined, path: '', problem, advice }] }
  }
  return parseRead(readYaml(text), text, options)
}

/**
 * Reads the text of a catalog, YAML or JSON, as plain data that isn't checked. Returns the faults of its
 * syntax.
 */
export function readUncheckedCatalog(
  text: string,
  file: string,
): { ok: true; value: unknown } | { ok: false; faults: readonly Fault[] } {
  const read = looksLikeJson(text) ? readJson(text) : readYaml(text)
  return read.ok ? read : { ok: false, faults: read.faults.map((fault) => ({ file, path: '', ...fault })) }
}

/**
 * Checks a catalog that is plain data, as a text of JSON would be checked. `version` is the version that the
 * catalog gets.
 */
export function parseCatalogData(
  value: unknown,
  {
    file,
    version,
    variables = {},
    allowAddresses,
  }: {
    file: string
    version: string
    variables?: Variables
    allowAddresses?: readonly string[] | undefined
  },
): ParsedCatalog {
  return checkAndBuild(value, new FaultList(file, value, undefined), { version, variables, allowAddresses })
}

const maxYaml = 16 * 1024 * 1024
/** The most characters of a text in braces that may be YAML. A longer text in braces must be JSON. */
const maxInBraces = 2 * 1024 * 1024

type ReadText = { ok: true; value: unknown; place?: YamlText['place'] } | ReturnType<typeof readJson>

/** Checks the result of reading a catalog's text. Returns the catalog, or all faults of the text. */
function parseRead(
  read: ReadText,
  text: string,
  {
    file,
    variables,
    allowAddresses,
  }: { file: string; variables: Variables; allowAddresses: readonly string[] | undefined },
): ParsedCatalog {
  if (!read.ok) return { ok: false, faults: read.faults.map((fault) => ({ file, path: '', ...fault })) }

  const faults = new FaultList(file, read.value, 'place' in read ? read.place : undefined)
  if (isEmptyDocument(read.value)) {
    faults.add([], {
      problem: 'the catalog is empty',
      advice: 'write sources: [] and destinations: [] at least, or restore the file if it was cut off',
    })
    return { ok: false, faults: faults.sorted() }
  }
  const version = createHash('sha256').update(text).digest('hex').slice(0, 12)
  return checkAndBuild(read.value, faults, { version, variables, allowAddresses })
}

function checkAndBuild(
  value: unknown,
  faults: FaultList,
  {
    version,
    variables,
    allowAddresses,
  }: { version: string; variables: Variables; allowAddresses: readonly string[] | undefined },
): ParsedCatalog {
  const shape = checkDefinition(value)
  if (!shape.ok) for (const fault of shape.faults) faults.add(fault.path, fault, fault.of)

  const policy = allowAddresses && createAddressPolicy(allowAddresses)
  checkRules(value, faults, variables, policy)
  if (!shape.ok || !faults.isEmpty) return { ok: false, faults: faults.sorted() }
  const { definition } = shape
  return { ok: true, catalog: build(definition, variables, version), expected: definition.expect }
}

/** Builds the catalog from a definition that has no faults. */
function build(definition: CatalogDefinition, variables: Variables, version: string): Catalog {
  const sources = definition.sources.map(
    ({
      id,
      name = id,
      kind = 'events',
      enabled = true,
      writeKeys = [],
      serverKeys = [],
      maxPerSecond,
      labels,
    }): Source => ({
      id,
      name,
      kind,
      enabled,
      writeKeys,
      serverKeys: serverKeys.map((key) => filledIn(key, variables)),
      maxPerSecond,
      ...(labels && { labels }),
    }),
  )
  const destinations = definition.destinations.map(
    ({
      id,
      name = id,
      state = 'on',
      strategy = 'all',
      maxInFlight,
      rateLimit,
      signing,
      ...rest
    }): Destination => ({
      id,
      name,
      state,
      sources: rest.sources,
      filter: rest.filter && filterOf(rest.filter),
      sharedSecret: rest.sharedSecret === undefined ? undefined : filledIn(rest.sharedSecret, variables),
      nextSharedSecret:
        rest.nextSharedSecret === undefined ? undefined : filledIn(rest.nextSharedSecret, variables),
      sharedSecretEndsAtMs:
        rest.sharedSecretEndsAt === undefined ? undefined : parseTimestamp(rest.sharedSecretEndsAt),
      ...signingOf(signing, variables),
      strategy,
      maxInFlight: maxInFlight ?? 64,
      maxInFlightSick: maxInFlight,
      rateLimit: rateLimit && {
        perSecond: rateLimit.perSecond,
        burst: rateLimit.burst ?? Math.max(1, Math.ceil(rateLimit.perSecond)),
      },
      ...(rest.timeout !== undefined && { timeoutMs: readTimeout(rest.timeout) }),
      autoPauseMs: rest.autoPause === undefined ? undefined : readAutoPause(rest.autoPause),
      ...(rest.labels && { labels: rest.labels }),
      ...(rest.batch && { batch: readBatch(rest.batch) }),
      hooks: rest.hooks.map((hook) => buildHook(hook, variables)),
    }),
  )
  return createCatalog(sources, destinations, version)
}

function filterOf({
  types,
  events,
  historical,
}: NonNullable<CatalogDefinition['destinations'][number]['filter']>): MessageFilter {
  return { types, events, ...(historical === false && { historical }) }
}

function signingOf(
  {
    standardWebhooks = false,
    ed25519,
  }: NonNullable<CatalogDefinition['destinations'][number]['signing']> = {},
  variables: Variables,
): Pick<Destination, 'standardWebhooks' | 'signingKeys'> {
  return {
    standardWebhooks,
    ...(ed25519 && { signingKeys: ed25519.map((key) => filledIn(key, variables)) }),
  }
}

function buildHook(
  { url: text, id, headers = {}, login, tls }: CatalogDefinition['destinations'][number]['hooks'][number],
  variables: Variables,
): Hook {
  const read = readHookUrl(text, variables)
  if (!read.ok) throw new Error('a URL was read that its rules refuse')
  const { url, origin, path } = read
  const filled = (value: string): string => filledIn(value, variables)
  return {
    id: id ?? read.id,
    url,
    origin,
    path,
    headers: Object.entries(headers).map(([name, value]) => [name, filled(value)]),
    ...(login && { login: buildLogin(login, { filled, placeOf }) }),
    ...(tls && { tls: buildTls(tls, filled) }),
  }
}

/** Reads a URL without variables that has no fault. */
function placeOf(text: string): Pick<Hook, 'origin' | 'path'> {
  const read = readHookUrl(text, {})
  if (!read.ok) throw new Error('a URL was read that its rules refuse')
  return { origin: read.origin, path: read.path }
}

function filledIn(text: string, variables: Variables): string {
  const filled = fillIn(text, variables)
  if (!filled.ok) throw new Error('a variable was read that its rules refuse')
  return filled.value
}

/** Collects the faults of one text, each fault with its place if the reader of the text knows places. */
class FaultList implements FaultSink {
  readonly #file: string
  readonly #root: unknown
  readonly #place: YamlText['place'] | undefined
  readonly #faults: Fault[] = []
  #count = 0
  readonly #paths = new Set<string>()

  constructor(file: string, root: unknown, place: YamlText['place'] | undefined) {
    this.#file = file
    this.#root = root
    this.#place = place
  }

  get isEmpty(): boolean {
    return this.#faults.length === 0
  }

  add(path: Path, { problem, advice, ...lacking }: Breach, of: 'key' | 'value' = 'value'): void {
    this.#count++
    if (this.#count > maxFaults) return
    const { line, column } = this.#place?.(path, of) ?? { line: undefined, column: undefined }
    const formatted = formatPath(path)
    this.#paths.add(formatted)
    const id = idAt(this.#root, path)
    const place = { file: this.#file, line, column, path: formatted, ...(id !== undefined && { id }) }
    this.#faults.push({ ...place, problem, advice, ...(lacking.variable !== undefined && lacking) })
  }

  has(path: Path): boolean {
    return this.#paths.size > 0 && this.#paths.has(formatPath(path))
  }

  /** Returns the faults in the order of the text, as far as their places are known. */
  sorted(): readonly Fault[] {
    const listed = this.#faults.toSorted(
      (a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0),
    )
    if (this.#count <= maxFaults) return listed
    const more = { problem: 'has more faults than are listed', advice: 'repair these first' }
    return [...listed, { file: this.#file, line: undefined, column: undefined, path: '', ...more }]
  }
}
