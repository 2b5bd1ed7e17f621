import { setImmediate as takeTurns } from 'node:timers/promises'

/** How long each call of `fuzz` runs, in minutes. */
const minutes = Number(process.env['SLUICE_TEST_FUZZ_MINUTES'] ?? 10)

/** The seed of the first run. Each later run uses the next number. */
const firstSeed = Number(process.env['SLUICE_TEST_FUZZ_SEED'] ?? Date.now() % 2 ** 31)

/** The time limit of a test that calls `fuzz`. */
export const fuzzTimeoutMs = (minutes + 5) * 60_000

/** The parameters that a run passes to fast-check. */
export type FuzzParameters = { seed: number; numRuns: number }

/**
 * Runs a property again and again for 10 minutes, or for `SLUICE_TEST_FUZZ_MINUTES`. Each run has another
 * seed. A failure names its seed. To repeat the failure, set `SLUICE_TEST_FUZZ_SEED` to that seed.
 */
export async function fuzz(run: (parameters: FuzzParameters) => void | Promise<void>): Promise<void> {
  const endMs = performance.now() + minutes * 60_000
  for (let seed = firstSeed; seed === firstSeed || performance.now() < endMs; seed++) {
    try {
      await run({ seed, numRuns: 1_000 })
    } catch (cause) {
      throw new Error(`SLUICE_TEST_FUZZ_SEED=${seed} fails again with this`, { cause })
    }
    // A run may never wait for anything. So the test runner gets a turn here, to send its own messages.
    await takeTurns()
  }
}
