/** Two runs that are compared, one without the trouble and one with it. */
export type Pair<T> = { without: T; with: T }

export type SideName = keyof Pair<unknown>

/**
 * Measures pairs of runs. The first side of a pair alternates, so that a machine that becomes slower favours
 * neither side.
 */
export async function measurePairs<T>(
  count: number,
  measure: (side: SideName, pair: number) => Promise<T>,
): Promise<Pair<T>[]> {
  const pairs: Pair<T>[] = []
  for (let pair = 1; pair <= count; pair++) {
    if (pair % 2 === 1) {
      const without = await measure('without', pair)
      pairs.push({ without, with: await measure('with', pair) })
    } else {
      const troubled = await measure('with', pair)
      pairs.push({ without: await measure('without', pair), with: troubled })
    }
  }
  return pairs
}
