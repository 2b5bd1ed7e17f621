import type { OverLimit, SizeLimits, SizeRule } from './sizes.ts'

/** What is over the limits already: the sizes of all places, largest first, by file and rule. It only shrinks. */
export type Baseline = Readonly<Record<string, Readonly<Partial<Record<SizeRule, readonly number[]>>>>>

const meanings: Readonly<Record<SizeRule, string>> = {
  'max-lines': 'lines in the file',
  'max-lines-per-function': 'lines in a function',
  'max-params': 'parameters of a function',
}

/** Lists what is over the limits, as the baseline holds it. Files are sorted. */
export function baselineOf(found: readonly OverLimit[]): Baseline {
  const baseline: Record<string, Partial<Record<SizeRule, readonly number[]>>> = {}
  for (const { file, rule, size } of found.toSorted((a, b) => (a.file < b.file ? -1 : 1))) {
    const rules = (baseline[file] ??= {})
    rules[rule] = [...(rules[rule] ?? []), size].sort((a, b) => b - a)
  }
  return baseline
}

/** Writes a baseline as its file has it, formatted: one list a line. */
export function baselineText(baseline: Baseline): string {
  const text = JSON.stringify(baseline, null, 2)
  return `${text.replaceAll(/\[\s*([^\]]*?)\s*\]/g, (_, sizes: string) => `[${sizes.replaceAll(/\s+/g, ' ')}]`)}\n`
}

/**
 * Compares what is over the limits with the baseline. `grown`: what has become worse. `shrunk`: what has become
 * better, which the baseline has to follow, or it would be free to grow again. One line each; all are faults.
 */
export function compareWithBaseline(
  found: readonly OverLimit[],
  allowed: Baseline,
  limits: SizeLimits,
): { grown: readonly string[]; shrunk: readonly string[] } {
  const now = baselineOf(found)
  const grown = entriesOf(now).flatMap(({ file, rule, sizes }) => {
    const fault = growthOf(sizes, allowed[file]?.[rule] ?? [])
    return fault === undefined ? [] : [`${file}: ${fault} (limit: ${limits[rule]} ${meanings[rule]})`]
  })
  const shrunk = entriesOf(allowed).flatMap(({ file, rule, sizes }) =>
    isBelow(now[file]?.[rule] ?? [], sizes) ? [`${file}: has become smaller (${meanings[rule]})`] : [],
  )
  return { grown, shrunk }
}

function growthOf(sizes: readonly number[], before: readonly number[]): string | undefined {
  if (sizes.length > before.length) {
    if (before.length === 0) return `${sizes.join(', ')}, for the first time`
    return `${sizes.length} places instead of ${before.length}`
  }
  const grown = sizes.findIndex((size, index) => size > (before[index] ?? 0))
  return grown < 0 ? undefined : `grew from ${before[grown]} to ${sizes[grown]}`
}

/** Places or sizes are fewer. */
function isBelow(sizes: readonly number[], before: readonly number[]): boolean {
  return before.some((size, index) => (sizes[index] ?? 0) < size)
}

type Entry = { readonly file: string; readonly rule: SizeRule; readonly sizes: readonly number[] }

function entriesOf(baseline: Baseline): readonly Entry[] {
  const names: readonly SizeRule[] = ['max-lines', 'max-lines-per-function', 'max-params']
  return Object.entries(baseline).flatMap(([file, rules]) =>
    names.flatMap((rule) => {
      const sizes = rules[rule]
      return sizes === undefined ? [] : [{ file, rule, sizes }]
    }),
  )
}
