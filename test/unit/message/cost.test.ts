import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { entering } from '../../../bench/refusals/costs.ts'
import { knownMessages } from '../../../bench/refusals/hostile-messages.ts'
import { costRatio } from '../../support/cost.ts'
import { rewriteOrdinaryBody } from '../../support/ordinary-body.ts'
import { Random } from '../../support/random.ts'

/**
 * The most CPU time that a message may cost. The unit is the time that it takes to parse an ordinary body of
 * half a megabyte and to write it again. On a quiet machine, none costs a third of this.
 */
const mostBodies = 5
/** How many different messages there are of each kind. */
const messages = 64
/** The longest text of a message that is parsed to a value, such as an id. */
const mostParsed = 1_000

const odd = knownMessages().filter(({ name }) =>
  /^(?:a key \\|an index) before .* in an? (?:list|object)$/.test(name),
)

describe.each(odd)('32 KB of $name', (of) => {
  const random = new Random(1)
  const inputs = Array.from({ length: messages }, () => of.make(random))
  let nth = 0
  const enterNext = (): void => entering(inputs[nth++ % messages] ?? Buffer.alloc(0), of)

  test('cost no more than five ordinary batches of 500 KB', () => {
    expect(costRatio(enterNext, rewriteOrdinaryBody, mostBodies)).toBeLessThan(mostBodies)
  })

  // V8 makes a hidden class for each new order of keys, and reads keys with an escape slowly.
  test('are not parsed to a value', () => {
    const parse = vi.spyOn(JSON, 'parse')
    onTestFinished(() => parse.mockRestore())
    for (let times = 0; times < messages; times++) enterNext()
    const lengths = parse.mock.calls.map(([text]) => text.length)
    expect(Math.max(0, ...lengths)).toBeLessThan(mostParsed)
  })
})
