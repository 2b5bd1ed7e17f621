import type { OverLimit, SizeLimits, SizeRule } from './sizes.ts'

/** What one file may have over one limit: how many places, and the size of the largest, rounded up. */
export type Allowance = { readonly count: number; readonly most: number }

/** What is over the limits already, by file and rule. It only shrinks. */
export type Baseline = Readonly<Record<string, Readonly<Partial<Record<SizeRule, Allowance>>>>>

/** Sizes are rounded up to a multiple of this, so that a line more in a large file isn't a fault. */
const steps: SizeLimits = { 'max-lines': 50, 'max-lines-per-function': 10, 'max-params': 1 }

const meanings: Readonly<Record<SizeRule, string>> = {
  'max-lines': 'lines in the file',
  'max-lines-per-function': 'lines in a function',
  'max-params': 'parameters of a function',
}

/** Sums up what is over the limits, as the baseline holds it. Files are sorted. */
export function baselineOf(found: readonly OverLimit[]): Baseline {
  const baseline: Record<string, Partial<Record<SizeRule, Allowance>>> = {}
  for (const { file, rule, size } of found.toSorted((a, b) => (a.file < b.file ? -1 : 1))) {
    const rules = (baseline[file] ??= {})
    const { count, most } = rules[rule] ?? { count: 0, most: 0 }
    const rounded = Math.ceil(size / steps[rule]) * steps[rule]
    rules[rule] = { count: count + 1, most: Math.max(most, rounded) }
  }
  return baseline
}

/**
 * Compares what is over the limits with the baseline. `grown`: what has become worse, one line each, which is a
 * fault. `shrunk`: whether something has become better, so that the baseline should follow.
 */
export function compareWithBaseline(
  found: readonly OverLimit[],
  allowed: Baseline,
  limits: SizeLimits,
): { grown: readonly string[]; shrunk: boolean } {
  const now = baselineOf(found)
  const grown = Object.entries(now).flatMap(([file, rules]) =>
    entriesOf(rules).flatMap(([rule, { count, most }]) => {
      const before = allowed[file]?.[rule]
      const limit = `${limits[rule]} ${meanings[rule]}`
      if (before === undefined) return [`${file}: ${most} or fewer, over the limit of ${limit}`]
      if (most > before.most) return [`${file}: grew beyond ${before.most} (limit: ${limit})`]
      return count > before.count
        ? [`${file}: ${count} places instead of ${before.count} (limit: ${limit})`]
        : []
    }),
  )
  const shrunk = Object.entries(allowed).some(([file, rules]) =>
    entriesOf(rules).some(([rule, before]) => {
      const left = now[file]?.[rule]
      return left === undefined || left.count < before.count || left.most < before.most
    }),
  )
  return { grown, shrunk }
}

function entriesOf(rules: Readonly<Partial<Record<SizeRule, Allowance>>>): [SizeRule, Allowance][] {
  const names: readonly SizeRule[] = ['max-lines', 'max-lines-per-function', 'max-params']
  return names.flatMap((rule) => {
    const allowance = rules[rule]
    return allowance === undefined ? [] : [[rule, allowance]]
  })
}
