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
import { fillIn, type Variables, variablesAt } from './variables.ts'
import { readYaml, type YamlText } from './yaml.ts'

export type ParsedCatalog =
  | {
      ok: true
      catalog: Catalog
      /** The numbers of entries that the text says it has. It has as many. */
      expected?: ExpectedCounts | undefined
      /** The faults of values of variables that keep their former values. */
      kept?: readonly Fault[] | undefined
      /** The values with which the catalog was made, if some variables keep their former ones. */
      variables?: Variables | undefined
    }
  | {
      ok: false
      /** Without those of `kept`. */
      faults: readonly Fault[]
      kept?: readonly Fault[] | undefined
    }

type Refused = Extract<ParsedCatalog, { ok: false }>

export type ParseOptions = {
  /** The file name that faults get. */
  readonly file: string
  /** The values of variables such as `${CATALOG_X}`. */
  readonly variables?: Variables
  /**
   * The values with which a catalog is in force. A variable that has changed since, and whose value has a
   * fault now, keeps the former value, so that it keeps back no other edit. `undefined`: there are none.
   */
  readonly formerVariables?: Variables | undefined
  /**
   * Address ranges that are allowed for hooks although they aren't public. A process that delivers must pass
   * them. If they are absent, no address is checked.
   */
  readonly allowAddresses?: readonly string[] | undefined
}

/**
 * Parses the text of a catalog, YAML or JSON. Returns the catalog, or its faults. If the text has a syntax
 * error, only syntax errors are returned, because there is no data to check. Otherwise the first 1,000 faults
 * are returned. Each fault has its line and column. In a JSON text of more than 2 Mi characters, a fault of
 * the data has only its path. The faults quote no URL, secret or header value. Never throws.
 */
export function parseCatalog(text: string, options: ParseOptions): ParsedCatalog {
  const { file } = options
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
  options: ParseOptions & { readonly version: string },
): ParsedCatalog {
  return checkAndBuild(value, () => new FaultList(options.file, value, undefined), options)
}

const maxYaml = 16 * 1024 * 1024
/** The most characters of a text in braces that may be YAML. A longer text in braces must be JSON. */
const maxInBraces = 2 * 1024 * 1024

type ReadText = { ok: true; value: unknown; place?: YamlText['place'] } | ReturnType<typeof readJson>

/** Checks the result of reading a catalog's text. Returns the catalog, or all faults of the text. */
function parseRead(read: ReadText, text: string, options: ParseOptions): ParsedCatalog {
  const { file } = options
  if (!read.ok) return { ok: false, faults: read.faults.map((fault) => ({ file, path: '', ...fault })) }

  const newFaults = (): FaultList => new FaultList(file, read.value, 'place' in read ? read.place : undefined)
  if (isEmptyDocument(read.value)) {
    const faults = newFaults()
    faults.add([], {
      problem: 'the catalog is empty',
      advice: 'write sources: [] and destinations: [] at least, or restore the file if it was cut off',
    })
    return { ok: false, faults: faults.sorted() }
  }
  const version = createHash('sha256').update(text).digest('hex').slice(0, 12)
  return checkAndBuild(read.value, newFaults, { ...options, version })
}

function checkAndBuild(
  value: unknown,
  newFaults: () => FaultList,
  {
    version,
    variables: given = {},
    formerVariables = given,
    allowAddresses,
  }: ParseOptions & { readonly version: string },
): ParsedCatalog {
  const shape = checkDefinition(value)
  const policy = allowAddresses && createAddressPolicy(allowAddresses)
  const kept: Fault[] = []
  for (let variables = given; ;) {
    const faults = newFaults()
    if (!shape.ok) for (const fault of shape.faults) faults.add(fault.path, fault, fault.of)
    checkRules(value, faults, variables, policy)
    const back = faults.setBack(variables, formerVariables)
    if (back === undefined) {
      if (!shape.ok || !faults.isEmpty) return { ok: false, ...refused(faults.sorted(), kept) }
      const { definition } = shape
      const catalog = build(definition, variables, version)
      const more = kept.length === 0 ? {} : { kept, variables }
      return { ok: true, catalog, expected: definition.expect, ...more }
    }
    kept.push(...back.faults)
    variables = back.variables
  }
}

/** A fault that a former value of a variable has not mended is told once. */
function refused(faults: readonly Fault[], kept: readonly Fault[]): Pick<Refused, 'faults' | 'kept'> {
  const places = new Set(faults.map(({ path }) => path))
  const others = kept.filter(({ path }) => !places.has(path))
  return others.length === 0 ? { faults } : { faults, kept: others }
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
      ...rulesOf(rest),
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

function rulesOf({
  filter,
  mappings,
}: Partial<CatalogDefinition['destinations'][number]>): Pick<Destination, 'filter' | 'mappings'> {
  return { filter: filter && filterOf(filter), mappings }
}

function filterOf({
  types,
  events,
  historical,
  sample,
  condition,
}: NonNullable<CatalogDefinition['destinations'][number]['filter']>): MessageFilter {
  return {
    types,
    events,
    ...(historical === false && { historical }),
    ...(sample !== undefined && { sample }),
    ...(condition !== undefined && { condition }),
  }
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
  /** The variables of the values that have the faults. */
  readonly #variables = new Map<Fault, readonly string[]>()

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
    const fault = { ...place, problem, advice, ...(lacking.variable !== undefined && lacking) }
    this.#faults.push(fault)
    this.#variables.set(fault, variablesAt(this.#root, path))
  }

  /**
   * Sets the variables back whose values have faults and have changed. Returns these faults with the values
   * to check then. Returns `undefined` if there are none.
   */
  setBack(
    variables: Variables,
    former: Variables,
  ): { readonly faults: readonly Fault[]; readonly variables: Variables } | undefined {
    const faults: Fault[] = []
    const back: Record<string, string> = {}
    for (const [fault, names] of this.#variables) {
      const kept = names.flatMap((name) => {
        const value = Object.hasOwn(former, name) ? former[name] : undefined
        return value === undefined || value === '' || value === variables[name]
          ? []
          : [[name, value] as const]
      })
      if (kept.length === 0) continue
      Object.assign(back, Object.fromEntries(kept))
      const named = kept.map(([name]) => name).join(', ')
      faults.push({ ...fault, problem: `${fault.problem} (in force: the former ${named})` })
    }
    return faults.length === 0 ? undefined : { faults, variables: { ...variables, ...back } }
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
