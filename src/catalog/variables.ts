import type { Breach } from './hook-rules.ts'

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
