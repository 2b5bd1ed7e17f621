import { expect, test } from 'vitest'
import {
  decodeCommitMetadata,
  encodeCommitMetadata,
  maxRememberedOffsets,
  type OwnerMark,
} from '../../src/kafka/wire/commit-metadata.ts'
import { fuzz, fuzzTimeoutMs } from '../support/fuzz.ts'
import { damage, timeOf } from '../support/mutation.ts'
import { Random } from '../support/random.ts'

const mostMs = 5

type Written = { position: number; settledAbove: number[]; mark: OwnerMark; text: string }

function written(random: Random): Written {
  const position = random.pick([0, 1, random.below(2 ** 31), random.below(2 ** 31) * 2 ** 20])
  const reach = random.pick([1, 10, 1_000, maxRememberedOffsets])
  const density = random.pick([1, 2, 50, 1_000])
  const settledAbove = Array.from({ length: reach }, (_, index) => position + index).filter(() =>
    random.oneIn(density),
  )
  const isFinal = random.oneIn(2)
  const epoch = random.pick([0, 1, random.below(2 ** 31), 2 ** 32 - 1])
  const begunBelow = Math.min(position + random.below(2 ** 20), 2 ** 48 - 1)
  const mark = { isFinal, epoch, ...(random.oneIn(2) && { begunBelow }) }
  return { position, settledAbove, mark, text: encodeCommitMetadata(position, settledAbove, mark) }
}

function anything(random: Random, { text }: Written): string {
  switch (random.below(4)) {
    case 0:
      return random.bytes(random.below(40)).toString('base64')
    case 1:
      return random.bytes(random.below(40)).toString('latin1')
    case 2:
      return damage(random, Buffer.from(text, 'base64'), [random.bytes(16)]).toString('base64')
    default:
      return damage(random, Buffer.from(text), [Buffer.from('AAAA====')]).toString('latin1')
  }
}

test(
  'commit metadata says what was written, or nothing',
  async () => {
    let undetected = 0
    let damaged = 0
    await fuzz(({ seed, numRuns }) => {
      const random = new Random(seed)
      for (let run = 0; run < numRuns / 10; run++) {
        const sent = written(random)
        const { position, settledAbove, mark, text } = sent
        expect(text.length).toBeLessThanOrEqual(4_096)
        expect(decodeCommitMetadata(position, text)).toEqual({ settledAbove, ...mark })

        for (let tries = 0; tries < 10; tries++) {
          const other = anything(random, sent)
          const read = decodeCommitMetadata(position, other)
          expect(timeOf(() => decodeCommitMetadata(position, other), mostMs)).toBeLessThanOrEqual(mostMs)
          damaged++
          if (read === undefined) continue
          // The offsets ascend, and none of them is beyond the reach of a commit.
          expect(
            read.settledAbove.every((offset, index, all) => offset > (all[index - 1] ?? position - 1)),
          ).toBe(true)
          expect(read.settledAbove.at(-1) ?? position).toBeLessThan(position + maxRememberedOffsets)
          expect(read.epoch).toBeGreaterThanOrEqual(0)
          expect(read.epoch).toBeLessThan(2 ** 32)
          const again = encodeCommitMetadata(position, read.settledAbove, read)
          expect(decodeCommitMetadata(position, again)).toEqual(read)
          if (again !== text) undetected++
        }
      }
    })
    process.stdout.write(`commit metadata: ${undetected} of ${damaged} damaged ones were believed\n`)
    // A checksum of 16 bits lets one of 65,536 damaged texts pass.
    expect(undetected).toBeLessThanOrEqual(5 + (damaged / 65_536) * 3)
  },
  fuzzTimeoutMs,
)

test(
  'no single bit can be changed without notice',
  async () => {
    await fuzz(({ seed }) => {
      const random = new Random(seed)
      const { position, text } = written(random)
      const bytes = Buffer.from(text, 'base64')
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const flipped = Buffer.from(bytes)
        flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        expect(decodeCommitMetadata(position, flipped.toString('base64')), `bit ${bit}`).toBeUndefined()
      }
    })
  },
  fuzzTimeoutMs,
)
