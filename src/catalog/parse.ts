import { createHash } from 'node:crypto'
import { createAddressPolicy } from '../address/policy.ts'
import { parseTimestamp } from '../message/timestamp.ts'
import { readAutoPause } from './auto-pause.ts'
import { createCatalog, type Catalog, type Destination, type Hook, type Source } from './catalog.ts'
import { checkDefinition } from './definition.ts'
import { formatPath, type Fault, type Path } from './fault.ts'
import { hookIdOf, parseHookUrl, type Breach } from './hook-rules.ts'
import { checkRules, type FaultSink } from './rules.ts'
import type { CatalogDefinition } from './catalog-schema.ts'
import { fillIn, type Variables } from './variables.ts'
import { readYaml, type YamlText } from './yaml.ts'

export type ParsedCatalog = { ok: true; catalog: Catalog } | { ok: false; faults: readonly Fault[] }

/**
 * Parses the text of a catalog. Returns the catalog, or all faults in the order of the text, each fault with
 * its line and column. If the text has a syntax error, only syntax errors are returned, because then there is
 * no data to check. Never throws. The faults quote no URL, secret or header value.
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
  const yaml = readYaml(text)
  if (!yaml.ok) return { ok: false, faults: yaml.faults.map((fault) => ({ file, path: '', ...fault })) }

  const faults = new FaultList(file, yaml)
  if (yaml.value === null) {
    faults.add([], {
      problem: 'the catalog is empty',
      advice: 'write sources: [] and destinations: [] at least',
    })
    return { ok: false, faults: faults.sorted() }
  }
  const shape = checkDefinition(yaml.value)
  if (!shape.ok) for (const fault of shape.faults) faults.add(fault.path, fault, fault.of)

  const policy = allowAddresses && createAddressPolicy(allowAddresses)
  checkRules(yaml.value, faults, variables, policy)
  if (!shape.ok || !faults.isEmpty) return { ok: false, faults: faults.sorted() }
  return { ok: true, catalog: build(shape.definition, variables, text) }
}

/** Builds the catalog from a definition that has no faults. */
function build(definition: CatalogDefinition, variables: Variables, text: string): Catalog {
  const sources = definition.sources.map(
    ({
      id,
      name = id,
      kind = 'events',
      enabled = true,
      writeKeys = [],
      serverKeys = [],
      maxPerSecond,
    }): Source => ({
      id,
      name,
      kind,
      enabled,
      writeKeys,
      serverKeys: serverKeys.map((key) => filledIn(key, variables)),
      maxPerSecond,
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
      sharedSecret: rest.sharedSecret === undefined ? undefined : filledIn(rest.sharedSecret, variables),
      nextSharedSecret:
        rest.nextSharedSecret === undefined ? undefined : filledIn(rest.nextSharedSecret, variables),
      sharedSecretEndsAtMs:
        rest.sharedSecretEndsAt === undefined ? undefined : parseTimestamp(rest.sharedSecretEndsAt),
      standardWebhooks: signing?.standardWebhooks ?? false,
      strategy,
      maxInFlight: maxInFlight ?? 64,
      maxInFlightSick: maxInFlight,
      rateLimit: rateLimit && {
        perSecond: rateLimit.perSecond,
        burst: rateLimit.burst ?? Math.max(1, Math.ceil(rateLimit.perSecond)),
      },
      autoPauseMs: rest.autoPause === undefined ? undefined : readAutoPause(rest.autoPause),
      hooks: rest.hooks.map((hook) => buildHook(hook, variables)),
    }),
  )
  return createCatalog(sources, destinations, createHash('sha256').update(text).digest('hex').slice(0, 12))
}

function buildHook(
  { url: text, id, headers = {} }: CatalogDefinition['destinations'][number]['hooks'][number],
  variables: Variables,
): Hook {
  const parsed = parseHookUrl(text)
  if (!parsed.ok) throw new Error('a URL was read that its rules refuse')
  const { url, origin, path } = parsed
  return {
    id: id ?? hookIdOf(url),
    url,
    origin,
    path,
    headers: Object.entries(headers).map(([name, value]) => [name, filledIn(value, variables)]),
  }
}

function filledIn(text: string, variables: Variables): string {
  const filled = fillIn(text, variables)
  if (!filled.ok) throw new Error('a variable was read that its rules refuse')
  return filled.value
}

/** Collects the faults of one text, each fault with its place. */
class FaultList implements FaultSink {
  readonly #file: string
  readonly #yaml: YamlText
  readonly #faults: Fault[] = []
  readonly #paths = new Set<string>()

  constructor(file: string, yaml: YamlText) {
    this.#file = file
    this.#yaml = yaml
  }

  get isEmpty(): boolean {
    return this.#faults.length === 0
  }

  add(path: Path, { problem, advice }: Breach, of: 'key' | 'value' = 'value'): void {
    const { line, column } = this.#yaml.place(path, of)
    const formatted = formatPath(path)
    this.#paths.add(formatted)
    this.#faults.push({ file: this.#file, line, column, path: formatted, problem, advice })
  }

  has(path: Path): boolean {
    return this.#paths.size > 0 && this.#paths.has(formatPath(path))
  }

  sorted(): readonly Fault[] {
    return this.#faults.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0))
  }
}
