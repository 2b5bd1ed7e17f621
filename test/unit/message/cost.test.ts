import { expect, test } from 'vitest'
import { entering } from '../../../bench/refusals/costs.ts'
import { knownMessages } from '../../../bench/refusals/hostile-messages.ts'
import { cpuOfAll } from '../../../bench/refusals/worst-case.ts'
import { ordinaryMs } from '../../support/ordinary-body.ts'
import { Random } from '../../support/random.ts'

/**
 * The most CPU time that a message may cost. The unit is the time that it takes to parse an ordinary body of
 * half a megabyte and to write it again. Parsing a message with a key that is a backslash costs more than that.
 */
const mostBodies = 2
/** The number of messages that are measured together, and how often, as other programs disturb the measure. */
const messages = 16
const tries = 3

const odd = knownMessages().filter(({ name }) =>
  /^(?:a key \\|an index) before .* in an? (?:list|object)$/.test(name),
)

test.each(odd)('32 KB of $name cost no more than two ordinary batches of 500 KB', (of) => {
  const random = new Random(1)
  let least = Infinity
  for (let tried = 0; tried < tries && least > mostBodies; tried++) {
    const inputs = Array.from({ length: messages }, () => of.make(random))
    const ms = cpuOfAll(inputs, (input) => entering(input, of))
    least = Math.min(least, ms / ordinaryMs(40))
  }
  expect(least).toBeLessThan(mostBodies)
})
