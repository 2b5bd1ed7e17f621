import type { Path } from './fault.ts'
import { secretLoginFields } from './features/hook-login.ts'
import type { Breach } from './hook-rules.ts'
import { childOf, isRecord } from './plain-data.ts'

/**
 * Values for `${CATALOG_X}` in secrets, headers and URLs, by name. Variables whose names don't begin with
 * `CATALOG_` aren't used.
 */
export type Variables = Readonly<Record<string, string | undefined>>

/** The names of variables that a catalog may contain. */
export const variableName = /^CATALOG_[A-Z0-9_]+$/

/**
 * Replaces the variables in a secret, a header value or a URL. `${CATALOG_X}` is replaced by the value of the
 * variable, and `$${` is replaced by `${`. Because of the prefix `CATALOG_`, people who may edit the catalog
 * can't read the other secrets of the process.
 */
export function fillIn(
  text: string,
  variables: Variables,
): { ok: true; value: string } | { ok: false; breaches: readonly Breach[] } {
  const breaches: Breach[] = []
  const value = text.replaceAll(
    /(\$?)\$\{(?:(CATALOG_[A-Z0-9_]+)\})?/g,
    (found, escaped: string, name?: string) => {
      if (escaped !== '') return found.slice(1)
      if (name === undefined) {
        breaches.push({
          problem: 'has ${ without the name of a variable that may be read here',
          advice: 'write ${CATALOG_NAME} (capital letters, digits, _), or $${ for a plain ${',
        })
        return ''
      }
      const variable = Object.hasOwn(variables, name) ? variables[name] : undefined
      if (variable === undefined || variable === '') {
        breaches.push({
          problem: `names the environment variable ${name}, which is not set`,
          advice: `set ${name}`,
          variable: name,
        })
        return ''
      }
      return variable
    },
  )
  return breaches.length === 0 ? { ok: true, value } : { ok: false, breaches }
}

/**
 * Returns true if a text names a variable. Such a text must not be in a place where no variable is filled in.
 */
export function namesVariable(text: string): boolean {
  return /\$\{CATALOG_[A-Z0-9_]+\}/.test(text)
}

/**
 * Returns the names of the variables in the value at a path, and in those that are checked together with it:
 * a certificate with its key, and a secret with the next one.
 */
export function variablesAt(root: unknown, path: Path): readonly string[] {
  const [list, , field, , ofHook] = path
  const isSecret = list === 'destinations' && (field === 'sharedSecret' || field === 'nextSharedSecret')
  const places = isSecret
    ? [
        [...path.slice(0, 2), 'sharedSecret'],
        [...path.slice(0, 2), 'nextSharedSecret'],
      ]
    : [ofHook === 'tls' ? path.slice(0, 5) : path]
  const names = new Set<string>()
  // The whole of an entry, or of the catalog, is no value of a variable.
  if (path.length > 2) for (const place of places) collect(place.reduce<unknown>(childOf, root), 0)
  return [...names]

  function collect(value: unknown, depth: number): void {
    if (typeof value === 'string') {
      for (const [, escape, name = ''] of value.matchAll(/(\$?)\$\{(CATALOG_[A-Z0-9_]+)\}/g))
        if (escape === '') names.add(name)
    } else if (depth < maxDepth && (Array.isArray(value) || isRecord(value)))
      for (const item of Object.values(value)) collect(item, depth + 1)
  }
}

const breach: Breach = {
  problem: 'names a variable, and is used as it is written here',
  advice:
    'write the value itself: ${CATALOG_X} is filled in only in url, in the values of headers, in the secrets of login, in tls, signing.ed25519, sharedSecret, nextSharedSecret and serverKeys',
}

/**
 * A text of a catalog is no deeper than this: mappings are the deepest (`mappingLimits.depth`). Faulty data
 * may be deeper.
 */
const maxDepth = 40

/**
 * Finds the variables in places where none is filled in, also in the names that a mapping gives. Sluice would
 * use such a text literally, for example as a write key that everybody can guess. `root` need not be valid by
 * the schema, and may contain itself (YAML's aliases).
 */
export function literalVariables(root: unknown): readonly (readonly [Path, Breach])[] {
  const found: (readonly [Path, Breach])[] = []
  const path: (string | number)[] = []
  const around = new Set<unknown>()
  visit(root)
  return found

  function visit(value: unknown): void {
    if (typeof value === 'string') {
      if (namesVariable(value) && !isFilledIn(path)) found.push([[...path], breach])
      return
    }
    if (path.length >= maxDepth || around.has(value) || !(Array.isArray(value) || isRecord(value))) return
    around.add(value)
    for (const [step, item] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
      path.push(step)
      if (path[2] === 'mappings' && namesVariable(String(step))) found.push([[...path], breach])
      visit(item)
      path.pop()
    }
    around.delete(value)
  }
}

function isFilledIn([list, , key, keyOfField, keyOfHook, keyOfLogin]: Path): boolean {
  if (list === 'sources') return key === 'serverKeys'
  if (list !== 'destinations') return false
  if (key === 'hooks') {
    if (keyOfHook === 'login') return secretLoginFields.some((field) => field === keyOfLogin)
    return keyOfHook === 'url' || keyOfHook === 'headers' || keyOfHook === 'tls'
  }
  if (key === 'signing') return keyOfField === 'ed25519'
  return key === 'sharedSecret' || key === 'nextSharedSecret'
}
