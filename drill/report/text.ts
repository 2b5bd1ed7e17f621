/** For the text of HTML and SVG, and attributes in double quotes. */
export function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}

/** `m:ss` */
export function clockOf(ms: number): string {
  const seconds = Math.round(ms / 1_000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** `950 ms`, `1.3 s`, `75 s` */
export function durationOf(ms: number): string {
  if (!Number.isFinite(ms)) return '–'
  if (ms < 1_000) return `${Math.round(ms)} ms`
  return `${(ms / 1_000).toFixed(ms < 20_000 ? 1 : 0)} s`
}

/** `1,500`, `25k`, `1M` */
export function shortNumber(value: number): string {
  if (value >= 1_000_000) return `${value / 1_000_000}M`
  return value >= 10_000 ? `${value / 1_000}k` : value.toLocaleString('en')
}

export function whole(value: number): string {
  return value.toLocaleString('en')
}
