import type { AddressPolicy } from '../address/policy.ts'
import { readCondition } from '../conditions/condition.ts'
import { autoPauseBreach } from './auto-pause.ts'
import { batchWaitBreach } from './features/batch.ts'
import { expectBreaches } from './expected.ts'
import { checkLogin } from './features/hook-login.ts'
import { checkTls, unknownPem } from './features/hook-tls.ts'
import { publicKeysOf, signingKeyBreach } from './features/signing-keys.ts'
import { timeoutBreach } from './features/request-timeout.ts'
import type { Path } from './fault.ts'
import { headerNameBreach, headersBreach, headerValueBreach, type Breach } from './hook-rules.ts'
import { readHookUrl } from './hook-url.ts'
import { hostBreach } from './host-rules.ts'
import { mappingFaults } from '../shape/faults.ts'
import { readMappings } from '../shape/mapping-schema.ts'
import { makesOwnRequests } from '../shape/shaper.ts'
import { isRecord, isString, listOf, recordOf } from './plain-data.ts'
import { secretBreach, secretEndBreach, standardSecretBreach } from './secret-rules.ts'
import { fillIn, literalVariables, type Variables } from './variables.ts'

/** The receiver of the faults that `checkRules` finds. */
export type FaultSink = {
  add(path: Path, breach: Breach): void
  /**
   * Returns true if a fault of the value at exactly this path was already found. In that case, the value
   * isn't checked again.
   */
  has(path: Path): boolean
}

/** The values that the checks need, and the receiver of the faults. */
type Check = {
  readonly faults: FaultSink
  readonly variables: Variables
  /** The policy for addresses of hosts. `undefined`: hosts aren't checked. */
  readonly policy: AddressPolicy | undefined
}

/**
 * Checks the rules that the schema can't express: numbers of entries, unique ids and write keys, sources that
 * exist, URLs, headers and variables. The data need not be valid by the schema, so that the faults of both
 * checks are listed together.
 */
export function checkRules(
  root: unknown,
  faults: FaultSink,
  variables: Variables,
  policy: AddressPolicy | undefined,
): void {
  const check: Check = { faults, variables, policy }
  for (const [path, breach] of [...expectBreaches(root), ...literalVariables(root)])
    if (!faults.has(path)) faults.add(path, breach)
  const catalog = recordOf(root)
  const kinds = checkSources(catalog['sources'], check)
  const first = [...kinds.keys()].slice(0, 10).join(', ')
  const known = { kinds, advice: `add it to sources${first === '' ? '' : `, or name one of ${first}`}` }
  checkUnique(
    recordsOf(catalog['destinations']).map(([index, { id }]) => [['destinations', index, 'id'], id]),
    'is the id of another destination',
    faults,
  )
  for (const [index, destination] of recordsOf(catalog['destinations'])) {
    const path = ['destinations', index]
    if (Array.isArray(catalog['sources'])) {
      checkKnown([...path, 'sources'], listOf(destination['sources']), known, faults)
    }
    checkSigning(path, destination, check)
    checkFilter([...path, 'filter'], recordOf(destination['filter']), faults)
    checkFilterSources(path, destination, kinds, faults)
    checkMappings([...path, 'mappings'], destination['mappings'], faults)
    const autoPausePath = [...path, 'autoPause']
    const tooLong = faults.has(autoPausePath) ? undefined : autoPauseBreach(destination['autoPause'])
    if (tooLong !== undefined) faults.add(autoPausePath, tooLong)
    const timeoutPath = [...path, 'timeout']
    const badTimeout = faults.has(timeoutPath) ? undefined : timeoutBreach(destination['timeout'])
    if (badTimeout !== undefined) faults.add(timeoutPath, badTimeout)
    const batchPath = [...path, 'batch', 'maxWait']
    const wait = faults.has(batchPath)
      ? undefined
      : batchWaitBreach(recordOf(destination['batch'])['maxWait'])
    if (wait !== undefined) faults.add(batchPath, wait)
    checkBatch([...path, 'batch'], destination, faults)
    checkHooks([...path, 'hooks'], recordsOf(destination['hooks']), check)
  }
}

/**
 * Reports a condition that can't be used, and names of events that have no effect, because no `track` passes
 * the filter.
 */
function checkFilter(
  path: Path,
  { types, events, condition }: Readonly<Record<string, unknown>>,
  faults: FaultSink,
): void {
  const conditionPath = [...path, 'condition']
  const read = isString(condition) && !faults.has(conditionPath) ? readCondition(condition) : undefined
  if (read?.ok === false) faults.add(conditionPath, read.fault)
  if (!Array.isArray(types) || events === undefined || types.includes('track')) return
  const places: Path[] = [
    [...path, 'types'],
    [...path, 'events'],
    ...types.map((_, at): Path => [...path, 'types', at]),
  ]
  if (places.some((place) => faults.has(place))) return
  faults.add([...path, 'events'], {
    problem: 'has no effect, because types lacks track',
    advice: 'add track to types, or remove events',
  })
}

/** Reports what the schema of mappings can't say. Those that break the schema aren't looked at. */
function checkMappings(path: Path, mappings: unknown, faults: FaultSink): void {
  if (mappings === undefined || faults.has(path)) return
  for (const [index, mapping] of (readMappings(mappings) ?? []).entries()) {
    for (const fault of mappingFaults(mapping)) faults.add([...path, index, ...fault.path], fault)
    for (const name of Object.keys(mapping.headers ?? {})) {
      const breach = headerNameBreach(name) ?? loginHeaderBreach(name)
      if (breach !== undefined) faults.add([...path, index, 'headers', name], breach)
    }
  }
}

/** Reports a batch that has no effect, because each mapping makes a request of its own. */
function checkBatch(
  path: Path,
  { batch, mappings }: Readonly<Record<string, unknown>>,
  faults: FaultSink,
): void {
  const read = batch === undefined || faults.has(path) ? undefined : readMappings(mappings)
  if (read === undefined || !read.every(makesOwnRequests)) return
  faults.add(path, {
    problem: 'has no effect, because each mapping makes a request of its own (method, path or format)',
    advice: 'put a path that all have into the URL of the hook, or remove batch',
  })
}

/** A login is a secret, and no message has it. */
function loginHeaderBreach(name: string): Breach | undefined {
  if (name.toLowerCase() !== 'authorization') return undefined
  return {
    problem: 'is a header that messages do not decide',
    advice: 'put it into the headers or the login of the hook',
  }
}

/** Reports a filter that has no effect, because the destination has sources of audiences only. */
function checkFilterSources(
  path: Path,
  { sources, filter }: Readonly<Record<string, unknown>>,
  kinds: ReadonlyMap<unknown, unknown>,
  faults: FaultSink,
): void {
  const ids = listOf(sources)
  if (filter === undefined || ids.length === 0 || ids.some((id) => kinds.get(id) !== 'audiences')) return
  faults.add([...path, 'filter'], {
    problem: 'has no effect, because all sources of the destination are audiences',
    advice: 'remove the filter, or add a source of events to sources',
  })
}

type Entry = readonly [index: number, record: Readonly<Record<string, unknown>>]

/** Returns the items of a list. For an item that is no record, returns an empty record. */
function recordsOf(value: unknown): readonly Entry[] {
  return listOf(value).map((item, index): Entry => [index, recordOf(item)])
}

/** Checks the sources. Returns the kind of each source by its id. */
function checkSources(value: unknown, check: Check): ReadonlyMap<string, unknown> {
  const { faults } = check
  const sources = recordsOf(value)
  const ids = sources.map(([index, { id }]): [Path, unknown] => [['sources', index, 'id'], id])
  checkUnique(ids, 'is the id of another source', faults)
  const writeKeys = sources.flatMap(([index, source]) =>
    listOf(source['writeKeys']).map((key, at): [Path, unknown] => [['sources', index, 'writeKeys', at], key]),
  )
  checkUnique(writeKeys, 'is a write key that is listed before', faults)
  const isPublic = new Set(writeKeys.map(([, key]) => key))
  for (const [index, source] of sources) {
    for (const [at, key] of listOf(source['serverKeys']).entries()) {
      const path = ['sources', index, 'serverKeys', at]
      checkFilledIn(path, key, (secret) => serverKeyBreach(secret, isPublic), check)
    }
  }
  return new Map(sources.flatMap(([, { id, kind }]) => (isString(id) ? [[id, kind]] : [])))
}

/**
 * Checks a server key. A server key must not also be a write key, because write keys are public: browsers
 * have them. With such a key, anybody could delete users.
 */
function serverKeyBreach(key: string, isPublic: ReadonlySet<unknown>): Breach | undefined {
  if (isPublic.has(key))
    return { problem: 'is a write key, which is public', advice: 'write a secret of its own' }
  if (/^[\x21-\x7e]{16,200}$/.test(key)) return undefined
  return {
    problem: 'is not 16 to 200 visible ASCII characters',
    advice: 'write what `openssl rand -hex 24` gives',
  }
}

/**
 * Reports each value that has occurred before. Ignores values that aren't text, because the schema reports
 * them.
 */
function checkUnique(
  values: readonly (readonly [Path, unknown])[],
  problem: string,
  faults: FaultSink,
): void {
  const seen = new Set<string>()
  for (const [path, value] of values) {
    if (!isString(value)) continue
    if (seen.has(value)) faults.add(path, { problem, advice: 'choose another, or remove one of the two' })
    seen.add(value)
  }
}

/** The sources of the catalog. `advice` says what to do about the id of another source. */
type Known = { readonly kinds: ReadonlyMap<string, unknown>; readonly advice: string }

function checkKnown(
  path: Path,
  named: readonly unknown[],
  { kinds, advice }: Known,
  faults: FaultSink,
): void {
  for (const [index, id] of named.entries()) {
    if (!isString(id) || kinds.has(id) || faults.has([...path, index])) continue
    const problem = `names the source ${JSON.stringify(id)}, which is not in the catalog`
    faults.add([...path, index], { problem, advice })
  }
}

/**
 * Checks that each secret of a destination can be used for its signatures, and that no secret is superfluous.
 */
function checkSigning(path: Path, destination: Readonly<Record<string, unknown>>, check: Check): void {
  const { faults } = check
  const { sharedSecret, nextSharedSecret, sharedSecretEndsAt, signing } = destination
  const isStandard = recordOf(signing)['standardWebhooks'] === true
  checkSigningKeys([...path, 'signing', 'ed25519'], listOf(recordOf(signing)['ed25519']), check)
  const rule = (secret: string) =>
    secretBreach(secret) ?? (isStandard ? standardSecretBreach(secret) : undefined)
  const nextPath = [...path, 'nextSharedSecret']
  const current = checkFilledIn([...path, 'sharedSecret'], sharedSecret, rule, check)
  const next = checkFilledIn(nextPath, nextSharedSecret, rule, check)

  if (isStandard && sharedSecret === undefined) {
    faults.add([...path, 'signing', 'standardWebhooks'], {
      problem: 'signs with a shared secret, and there is none',
      advice: 'add sharedSecret: ${CATALOG_NAME}',
    })
  }
  const endPath = [...path, 'sharedSecretEndsAt']
  const endBreach = faults.has(endPath) ? undefined : secretEndBreach(destination)
  if (endBreach !== undefined) faults.add(endPath, endBreach)
  if (nextSharedSecret === undefined) return
  if (sharedSecret === undefined) {
    faults.add(nextPath, { problem: 'is set without a sharedSecret', advice: 'write it as sharedSecret' })
  } else if (!isStandard && sharedSecretEndsAt === undefined) {
    faults.add(nextPath, {
      problem: 'has no use: X-Signature is made with sharedSecret alone',
      advice:
        'add signing: { standardWebhooks: true }, which signs with both, or sharedSecretEndsAt, or remove it',
    })
  } else if (next !== undefined && next === current) {
    faults.add(nextPath, {
      problem: 'is the same as sharedSecret',
      advice: 'write the new one, or remove it',
    })
  }
}

/**
 * Checks the private keys of a destination. No key may be there twice, because its signature would be too.
 */
function checkSigningKeys(path: Path, keys: readonly unknown[], check: Check): void {
  const known = new Set<string>()
  for (const [index, key] of keys.entries()) {
    const at = [...path, index]
    const text = check.faults.has(at)
      ? undefined
      : checkFilledIn(at, key, signingKeyBreach, { ...check, isPem: true })
    if (text === undefined || text === unknownPem || check.faults.has(at)) continue
    const [publicKey] = publicKeysOf([text])
    if (publicKey === undefined) continue
    if (known.has(publicKey.id))
      check.faults.add(at, { problem: 'is a key that is listed before', advice: 'remove one of the two' })
    known.add(publicKey.id)
  }
}

function checkHooks(path: Path, hooks: readonly Entry[], check: Check): void {
  const { faults, policy, variables } = check
  const ids = new Map<string, string>()
  for (const [index, hook] of hooks) {
    const urlPath = [...path, index, 'url']
    const url =
      isString(hook['url']) && !faults.has(urlPath) ? readHookUrl(hook['url'], variables) : undefined
    for (const breach of url?.ok === false ? url.breaches : []) faults.add(urlPath, breach)
    const refused = url?.ok === true && policy !== undefined ? hostBreach(url.origin, policy) : undefined
    if (refused !== undefined) faults.add(urlPath, refused)
    checkHeaders([...path, index, 'headers'], hook['headers'], check)
    checkFeatures([...path, index], hook, url?.ok === true ? url.origin : undefined, check)

    const id = isString(hook['id']) ? hook['id'] : url?.ok === true ? url.id : undefined
    if (id === undefined) continue
    const other = ids.get(id)
    if (other !== undefined && url?.ok === true && hook['id'] === undefined && other === url.url) {
      faults.add(urlPath, { problem: 'is the URL of another hook', advice: 'remove one, or give each an id' })
    } else if (other !== undefined) {
      faults.add([...path, index, 'id'], {
        problem: 'is the id of another hook of this destination',
        advice: 'choose another',
      })
    }
    ids.set(id, url?.ok === true ? url.url : '')
  }
}

/** Checks how the requests of a hook log in, and whom they trust. `origin`: of its URL, if it is known. */
function checkFeatures(
  path: Path,
  hook: Readonly<Record<string, unknown>>,
  origin: string | undefined,
  check: Check,
): void {
  const { login, tls, headers } = hook
  if (login === undefined && tls === undefined) return
  const ofHook = {
    isSecure: origin?.startsWith('https:'),
    add: (keys: readonly string[], breach: Breach): void => {
      if (!check.faults.has([...path, ...keys])) check.faults.add([...path, ...keys], breach)
    },
    text: (
      keys: readonly string[],
      value: unknown,
      rule: (text: string) => Breach | undefined,
      of: Pick<Breach, 'isPem'> = {},
    ): string | undefined => {
      const at = [...path, ...keys]
      const filled = check.faults.has(at) ? undefined : checkFilledIn(at, value, rule, { ...check, ...of })
      return check.faults.has(at) ? undefined : filled
    },
    url: (keys: readonly string[], value: unknown): void => {
      const at = [...path, ...keys]
      if (!isString(value) || check.faults.has(at)) return
      const read = readHookUrl(value, {})
      for (const breach of read.ok ? [] : read.breaches) check.faults.add(at, breach)
      const refused =
        read.ok && check.policy !== undefined ? hostBreach(read.origin, check.policy) : undefined
      if (refused !== undefined) check.faults.add(at, refused)
    },
  }
  const names = Object.keys(recordOf(headers)).map((name) => name.toLowerCase())
  if (isRecord(login)) checkLogin(login, names.includes('authorization'), ofHook)
  if (isRecord(tls)) checkTls(tls, ofHook)
}

function checkHeaders(path: Path, value: unknown, check: Check): void {
  const { faults } = check
  const headers: [string, string][] = []
  const names = new Set<string>()
  for (const [name, text] of Object.entries(recordOf(value))) {
    const at = [...path, name]
    const breach = headerNameBreach(name)
    if (breach !== undefined) faults.add(at, breach)
    if (names.has(name.toLowerCase())) {
      faults.add(at, {
        problem: 'is a header that is set before (case makes no difference)',
        advice: 'keep one',
      })
    }
    names.add(name.toLowerCase())
    const filled = checkFilledIn(at, text, headerValueBreach, check)
    if (filled !== undefined) headers.push([name, filled])
  }
  const breach = faults.has(path) ? undefined : headersBreach(headers)
  if (breach !== undefined) faults.add(path, breach)
}

function checkFilledIn(
  path: Path,
  text: unknown,
  rule: (value: string) => Breach | undefined,
  { faults, variables, isPem = false }: Check & Pick<Breach, 'isPem'>,
): string | undefined {
  if (!isString(text)) return undefined
  const filled = fillIn(text, variables)
  if (!filled.ok) {
    for (const breach of filled.breaches) faults.add(path, isPem ? { ...breach, isPem } : breach)
    return undefined
  }
  const breach = rule(filled.value)
  if (breach !== undefined) faults.add(path, breach)
  return filled.value
}
