/** How often something that has to be quick is tried. A machine that does other work may hold up some tries. */
const mostTries = 8

export type SoonestOptions = {
  /** Called before each try. The time that this takes doesn't count. */
  readonly before?: (nth: number) => unknown
  readonly tries?: number
}

/**
 * Returns the time that the quickest of some tries takes, in milliseconds. The first try that takes less than
 * `enoughMs` is the last one. Tests of what happens at once use this function, because a machine that stands
 * still for a moment holds up one try, and a fault holds up all of them. `attempt` gets the number of the try,
 * from 1.
 */
export async function soonest(
  enoughMs: number,
  attempt: (nth: number) => Promise<unknown>,
  { before, tries = mostTries }: SoonestOptions = {},
): Promise<number> {
  let leastMs = Infinity
  for (let nth = 1; nth <= tries && leastMs >= enoughMs; nth++) {
    await before?.(nth)
    const startedMs = performance.now()
    await attempt(nth)
    leastMs = Math.min(leastMs, performance.now() - startedMs)
  }
  return leastMs
}
