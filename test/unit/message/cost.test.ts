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
/**
 * Messages and ordinary bodies are measured by turns, because the speed of a shared machine changes from second
 * to second. The system counts CPU time in steps, so a turn has several of both.
 */
const turns = 4
const messages = 4
const ordinaryBodies = 10
/** How often this is repeated at most, as other programs disturb the measure. */
const tries = 5

const odd = knownMessages().filter(({ name }) =>
  /^(?:a key \\|an index) before .* in an? (?:list|object)$/.test(name),
)

test.each(odd)('32 KB of $name cost no more than two ordinary batches of 500 KB', (of) => {
  const random = new Random(1)
  let least = Infinity
  for (let tried = 0; tried < tries && least > mostBodies; tried++) {
    let [ms, unitMs] = [0, 0]
    for (let turn = 0; turn < turns; turn++) {
      const inputs = Array.from({ length: messages }, () => of.make(random))
      ms += cpuOfAll(inputs, (input) => entering(input, of))
      unitMs += ordinaryMs(ordinaryBodies)
    }
    least = Math.min(least, ms / unitMs)
  }
  expect(least).toBeLessThan(mostBodies)
})
