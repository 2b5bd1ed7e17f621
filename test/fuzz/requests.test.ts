import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseHookUrl } from '../../src/catalog/hook-rules.ts'
import { fuzz, fuzzTimeoutMs } from '../support/fuzz.ts'
import { trialsAt } from '../support/foul-hooks.ts'
import { expectHarmless, startTrials } from '../support/hook-trials.ts'

test(
  'the checks of headers and URLs never throw, take their own normal form, and let nothing pass that can not be sent',
  async () => {
    const counts = { taken: 0, refused: 0, elsewhere: 0 }
    await fuzz(async (parameters) => {
      const trials = await startTrials()
      try {
        await fc.assert(
          fc.asyncProperty(trialsAt(trials.port), async (trial) => {
            const parsed = parseHookUrl(trial.url)
            if (parsed.ok) expect(parseHookUrl(parsed.url)).toEqual(parsed)
            const report = await trials.run(trial)
            counts[report.kind]++
            expectHarmless(trials, trial, report)
          }),
          parameters,
        )
      } finally {
        await trials.stop()
      }
    })
    expect(Math.min(counts.taken, counts.refused)).toBeGreaterThan(0)
  },
  fuzzTimeoutMs,
)
