import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { distinct, spread } from '../../../src/audience-files/distinct.ts'
import { Spool } from '../../../src/audience-files/spool.ts'

/** Texts as JSON writes them, and texts that are longer than a block. */
const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 40 }).map((given) => JSON.stringify(given)),
  fc.integer({ min: 10_000, max: 100_000 }).map((length) => 'ü'.repeat(length)),
)

function withSpool<T>(buckets: number, use: (spool: Spool) => T): T {
  const spool = new Spool(buckets)
  try {
    return use(spool)
  } finally {
    spool.close()
  }
}

describe('a spool', () => {
  test('gives each bucket its texts in their order, as often as it is asked', () => {
    const added = fc.array(fc.tuple(fc.nat({ max: 2 }), text), { maxLength: 40 })
    fc.assert(
      fc.property(added, added, (first, then) => {
        withSpool(3, (spool) => {
          for (const all of [first, [...first, ...then]]) {
            for (const [bucket, given] of all === first ? first : then) spool.add(bucket, given)
            for (const bucket of [0, 1, 2]) {
              const expected = all.filter(([of]) => of === bucket).map(([, given]) => given)
              expect([...spool.read(bucket)].flat()).toEqual(expected)
              expect(spool.count(bucket)).toBe(expected.length)
            }
          }
        })
      }),
      { numRuns: 1_000 },
    )
  })

  test('leaves no file behind, even while it is open', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
    vi.stubEnv('TMPDIR', folder)
    try {
      withSpool(1, (spool) => {
        spool.add(0, 'x'.repeat(100_000))
        expect(readdirSync(folder)).toEqual([])
      })
    } finally {
      vi.unstubAllEnvs()
      rmSync(folder, { recursive: true })
    }
  })
})

describe('distinct texts of a bucket', () => {
  test('are each given once, in the same order each time, whatever fits in memory', () => {
    const repeated = fc.array(fc.nat({ max: 40 }).map(String), { maxLength: 120 })
    fc.assert(
      fc.property(repeated, fc.integer({ min: 1, max: 150 }), (texts, most) => {
        withSpool(1, (spool) => {
          for (const given of texts) spool.add(0, given)
          const found = [...distinct(spool, 0, { most })]
          expect(found.toSorted()).toEqual([...new Set(texts)].toSorted())
          expect([...distinct(spool, 0, { most })]).toEqual(found)
        })
      }),
      { numRuns: 1_000 },
    )
  })

  test('are spread evenly, whatever the users are called', () => {
    for (const prefix of ['', 'user-', '00000000-0000-0000-0000-']) {
      const counts = Array.from({ length: 8 }, () => 0)
      for (let user = 0; user < 8_000; user++) {
        const bucket = spread(`"${prefix}${user}"`) % 8
        counts[bucket] = (counts[bucket] ?? 0) + 1
      }
      expect(Math.min(...counts)).toBeGreaterThan(800)
      expect(Math.max(...counts)).toBeLessThan(1_200)
    }
  })
})
