import { expect, test } from 'vitest'
import { respell, respelledText } from '../../../../src/message/json/respell.ts'
import { Random } from '../../../support/random.ts'

const keys = ['a', 'b', '0', '1', '10', '2', 'c', '01', '4294967295', '4294967294', 'é', 'x'.repeat(60)]
const scalars = ['1', '"q"', 'null', `"${'y'.repeat(80)}"`, '{}', '[]']

/** Returns a value with many objects, at any depth, whose keys repeat or aren't in order. */
function valueOf(random: Random, depth: number): string {
  const kind = depth === 0 ? 0 : random.below(5)
  if (kind < 2) return random.pick(scalars)
  const length = random.below(random.oneIn(5) ? 30 : 5)
  const values = Array.from({ length }, () => valueOf(random, depth - 1))
  if (kind === 2) return `[${values.join(',')}]`
  return `{${values.map((value) => `${JSON.stringify(random.pick(keys))}:${value}`).join(',')}}`
}

test('objects out of order within each other are put in order as JSON.parse does', () => {
  const random = new Random(1)
  let moved = 0
  for (let times = 0; times < 1_000; times++) {
    const text = valueOf(random, 1 + random.below(6))
    const wanted = JSON.stringify(JSON.parse(text))
    if (wanted !== text) moved++
    const respelled = respell(Buffer.from(text), 0, { maxDepth: 100 })
    expect([respelledText(), respelled?.length]).toEqual([wanted, Buffer.byteLength(wanted)])
  }
  expect(moved).toBeGreaterThan(200)
})
