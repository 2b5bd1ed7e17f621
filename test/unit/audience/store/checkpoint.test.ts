import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Checkpoint } from '../../../../src/audience/store/checkpoint.ts'

describe('a checkpoint', () => {
  test('stands before the first record that is neither read nor known by its acknowledgement', () => {
    const step = fc.tuple(fc.constantFrom('wrote', 'read'), fc.nat({ max: 30 }))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const checkpoint = new Checkpoint(0)
        const known = new Set<number>()
        let readUpTo = -1
        for (const [how, offset] of steps) {
          if (how === 'wrote') {
            checkpoint.wrote(offset)
            known.add(offset)
          } else {
            // Records are read in order, so all records before this one have been read as well.
            checkpoint.read(offset)
            readUpTo = Math.max(readUpTo, offset)
          }
          let position = readUpTo + 1
          while (known.has(position)) position++
          expect(checkpoint.position).toBe(position)
          readUpTo = position - 1
        }
      }),
      { numRuns: 2_000 },
    )
  })

  test('has room for as much as ever once what it knew is read', () => {
    const most = 10_000
    const checkpoint = new Checkpoint(0)
    for (const offset of [1, 5, 6]) checkpoint.wrote(offset)
    checkpoint.read(1)
    for (let offset = 7; offset < most + 5; offset++) checkpoint.wrote(offset)
    checkpoint.read(4)
    expect(checkpoint.position).toBe(most + 5)

    const from = checkpoint.position
    for (let offset = from + 1; offset <= from + most; offset++)
      if (offset % 2 === 0) checkpoint.wrote(offset)
    checkpoint.read(from + most)
    for (let offset = 2; offset < most + 2; offset++) checkpoint.wrote(from + most + offset)
    checkpoint.read(from + most + 1)
    expect(checkpoint.position).toBe(from + 2 * most + 2)
  })

  test('does not pass what it is blocked at, however often that is', () => {
    const checkpoint = new Checkpoint(5)
    checkpoint.block(7)
    checkpoint.block(7)
    checkpoint.read(9)
    expect(checkpoint.position).toBe(7)
    checkpoint.unblock(7)
    expect(checkpoint.position).toBe(7)
    checkpoint.unblock(7)
    expect(checkpoint.position).toBe(10)
  })
})
