import type { Breach } from './hook-rules.ts'

/**
 * Values for `${CATALOG_X}` in secrets and headers, by name. Only variables whose names begin with `CATALOG_`
 * are read.
 */
export type Variables = Readonly<Record<string, string | undefined>>

/**
 * Puts variables into a secret or a header value: `${CATALOG_X}` becomes the variable's value, and `$${`
 * becomes a plain `${`. Many people may edit a catalog. Because of the prefix `CATALOG_`, they can't read all
 * other secrets of the process.
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
        })
        return ''
      }
      return variable
    },
  )
  return breaches.length === 0 ? { ok: true, value } : { ok: false, breaches }
}
