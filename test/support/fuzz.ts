import { setImmediate as takeTurns } from 'node:timers/promises'

/** How long a suite of `test/fuzz` goes on. */
const minutes = Number(process.env['SLUICE_TEST_FUZZ_MINUTES'] ?? 10)

/** The seed of the first run; those of the next count on from it. */
const firstSeed = Number(process.env['SLUICE_TEST_FUZZ_SEED'] ?? Date.now() % 2 ** 31)

/** The time limit of a test that calls `fuzz`. */
export const fuzzTimeoutMs = (minutes + 5) * 60_000

/** What a run gives to fast-check. */
export type FuzzParameters = { seed: number; numRuns: number }

/**
 * Runs a property again and again, with a fresh seed each time, until the minutes are over
 * (`SLUICE_TEST_FUZZ_MINUTES`, 10). A failure names the seed: `SLUICE_TEST_FUZZ_SEED` begins with it.
 */
export async function fuzz(run: (parameters: FuzzParameters) => void | Promise<void>): Promise<void> {
  const endMs = performance.now() + minutes * 60_000
  for (let seed = firstSeed; seed === firstSeed || performance.now() < endMs; seed++) {
    try {
      await run({ seed, numRuns: 1_000 })
    } catch (cause) {
      throw new Error(`SLUICE_TEST_FUZZ_SEED=${seed} fails again with this`, { cause })
    }
    // A run may wait for nothing: what the test runner has to say must get out in between.
    await takeTurns()
  }
}
