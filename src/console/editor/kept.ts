const kept = /^\$\{kept:([^}]*):[0-9a-f]{16}\}$/

/**
 * Returns since when a secret is set, of which the server shows only `${kept:TIME:ID}`. `undefined`: the text
 * is no such mark.
 */
export function keptSince(text: string): string | undefined {
  return kept.exec(text)?.[1]
}
