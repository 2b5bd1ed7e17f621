import type { OverLimit, SizeLimits, SizeRule } from './sizes.ts'

/**
 * The sizes that are allowed although they are over the limits, by file and rule, the largest first. A change
 * of the baseline may only remove or lower sizes.
 */
export type Baseline = Readonly<Record<string, Readonly<Partial<Record<SizeRule, readonly number[]>>>>>

const meanings: Readonly<Record<SizeRule, string>> = {
  'max-lines': 'lines in the file',
  'max-lines-per-function': 'lines in a function',
  'max-params': 'parameters of a function',
}

/** Returns the baseline that allows exactly the places found. Its files are sorted. */
export function baselineOf(found: readonly OverLimit[]): Baseline {
  const baseline: Record<string, Partial<Record<SizeRule, readonly number[]>>> = {}
  for (const { file, rule, size } of found.toSorted((a, b) => (a.file < b.file ? -1 : 1))) {
    const rules = (baseline[file] ??= {})
    rules[rule] = [...(rules[rule] ?? []), size].sort((a, b) => b - a)
  }
  return baseline
}

/** Returns the text of the baseline's file. Each list of sizes is on one line. */
export function baselineText(baseline: Baseline): string {
  const text = JSON.stringify(baseline, null, 2)
  return `${text.replaceAll(/\[\s*([^\]]*?)\s*\]/g, (_, sizes: string) => `[${sizes.replaceAll(/\s+/g, ' ')}]`)}\n`
}

/**
 * Compares the places over the limits with the baseline, and returns one line for each difference. `grown`:
 * the sizes that have become worse. `shrunk`: the sizes that have become better. These are faults too,
 * because they could grow again unnoticed if the baseline stayed as it is.
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

/** Returns true if there are fewer places than before, or if a size has become smaller. */
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
