import { BenchmarkFailure } from './failure.ts'

/** Returns the rows of a benchmark whose names are given, separated by commas. Missing: all. */
export function chosenRows<R extends { readonly name: string }>(
  rows: readonly R[],
  only: string | undefined,
): readonly R[] {
  if (only === undefined) return rows
  return only.split(',').map((name) => {
    const found = rows.find((row) => row.name === name)
    if (found !== undefined) return found
    const names = rows.map((row) => row.name).join(', ')
    throw new BenchmarkFailure(`the benchmark has no row ${name}. It has ${names}`)
  })
}
