/** Escapes a text for HTML and SVG, including attributes in double quotes. */
export function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}

/** Formats a duration as `m:ss`. */
export function clockOf(ms: number): string {
  const seconds = Math.round(ms / 1_000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** Formats a duration as `950 ms`, `1.3 s` or `75 s`. */
export function durationOf(ms: number): string {
  if (!Number.isFinite(ms)) return '–'
  if (ms < 1_000) return `${Math.round(ms)} ms`
  return `${(ms / 1_000).toFixed(ms < 20_000 ? 1 : 0)} s`
}

/** Formats a number as `1,500`, `25k` or `1M`. */
export function shortNumber(value: number): string {
  if (value >= 1_000_000) return `${value / 1_000_000}M`
  return value >= 10_000 ? `${value / 1_000}k` : value.toLocaleString('en')
}

export function whole(value: number): string {
  return value.toLocaleString('en')
}
