import { type Breach, hookIdOf, type HookUrl, parseHookUrl } from './hook-rules.ts'
import { fillIn, type Variables } from './variables.ts'

/**
 * Reads the URL of a hook as the catalog has it, with variables. `id` is the id that the hook has if the
 * catalog gives it none.
 */
export function readHookUrl(
  text: string,
  variables: Variables,
): ({ ok: true; id: string } & HookUrl) | { ok: false; breaches: readonly Breach[] } {
  const filled = fillIn(text, variables)
  if (!filled.ok) {
    // If a check lets the variable be unset, its stand-in has to be a URL where the catalog's text begins
    // with it.
    const isUrlOf = (variable: string | undefined): boolean => text.startsWith(`\${${variable}}`)
    return { ok: false, breaches: filled.breaches.map((one) => ({ ...one, isUrl: isUrlOf(one.variable) })) }
  }
  const parsed = parseHookUrl(filled.value)
  if (!parsed.ok) return parsed
  return { ...parsed, id: hookIdOf(parsed.url, text === filled.value ? undefined : text) }
}
