import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type SyncPart, syncPartCheck } from '../../../src/message/audience-change.ts'
import { partitionOf } from '../../../src/message/partitioner.ts'
import { Comparison } from '../../../src/audience-files/comparison.ts'
import { Sync, type SyncHead } from '../../../src/audience-files/sync.ts'
import { userId } from './chunks.ts'

const head: SyncHead = {
  audienceId: 'aud_1',
  audienceName: 'Größe "XL"',
  audienceKey: 'xl',
  syncId: 'sync-1',
  snapshotAt: '2026-01-31T12:00:00.000Z',
}
const leastBytes = Buffer.byteLength(JSON.stringify(head)) + 100

type Written = { partition: number; part: SyncPart; bytes: number }

function writeAll(
  userIds: readonly string[],
  partitions: number,
  maxPartBytes: number,
): { written: readonly Written[]; repeated: number } {
  const sync = new Sync({ head, partitions, maxPartBytes })
  try {
    for (const id of userIds) expect(sync.add(id)).toBeUndefined()
    const plans = Array.from({ length: partitions }, (_, partition) => sync.plan(partition))
    const written = plans.flatMap((plan) =>
      [...sync.parts(plan)].map(({ partition, users, value }) => {
        const part: unknown = JSON.parse(value)
        if (!syncPartCheck.Check(part)) throw new Error(`not as the schema has it: ${value}`)
        expect(part.userIds).toHaveLength(users)
        return { partition, part, bytes: Buffer.byteLength(value) }
      }),
    )
    return { written, repeated: plans.reduce((sum, plan) => sum + plan.repeated, 0) }
  } finally {
    sync.close()
  }
}

describe('the parts of a sync', () => {
  const given = fc.record({
    userIds: fc.array(
      fc.oneof(
        userId,
        fc.nat({ max: 30 }).map((number) => `u${number}`),
      ),
      { maxLength: 80, size: 'max' },
    ),
    partitions: fc.integer({ min: 1, max: 20 }),
    maxPartBytes: fc.integer({ min: leastBytes + 200, max: leastBytes + 800 }),
  })

  test('name each user once, in its own partition', () => {
    fc.assert(
      fc.property(given, ({ userIds, partitions, maxPartBytes }) => {
        const { written, repeated } = writeAll(userIds, partitions, maxPartBytes)
        const named = written.flatMap(({ part }) => part.userIds)
        const distinct = new Set(userIds)
        expect(named.toSorted()).toEqual([...distinct].toSorted())
        expect(repeated).toBe(userIds.length - distinct.size)
        for (const { partition, part } of written) {
          for (const id of part.userIds) expect(partitionOf(id, partitions)).toBe(partition)
        }
      }),
      { numRuns: 1_000 },
    )
  })

  test('are counted within each partition, of which each has one at least, and are none too large', () => {
    fc.assert(
      fc.property(given, ({ userIds, partitions, maxPartBytes }) => {
        const { written } = writeAll(userIds, partitions, maxPartBytes)
        for (let partition = 0; partition < partitions; partition++) {
          const parts = written.filter((each) => each.partition === partition).map(({ part }) => part)
          expect(parts.length).toBeGreaterThan(0)
          expect(parts.map(({ part }) => part)).toEqual(parts.map((_, index) => index + 1))
          for (const part of parts) {
            expect(part).toMatchObject({ ...head, type: 'sync', parts: parts.length })
            if (parts.length > 1) expect(part.userIds.length).toBeGreaterThan(0)
          }
        }
        for (const { bytes } of written) expect(bytes).toBeLessThanOrEqual(maxPartBytes)
      }),
      { numRuns: 1_000 },
    )
  })

  test('have room for as many users as a part may have', () => {
    const userIds = Array.from({ length: 1_000 }, (_, user) => `user-${user}`)
    const { written } = writeAll(userIds, 1, leastBytes + 1_000)
    for (const { bytes } of written.slice(0, -1)) expect(bytes).toBeGreaterThan(leastBytes + 900)
  })

  test('leave out an audience key that there is none of', () => {
    const { audienceKey: _key, ...keyless } = head
    const sync = new Sync({ head: keyless, partitions: 1, maxPartBytes: 10_000 })
    const [part] = [...sync.parts(sync.plan(0))]
    sync.close()
    expect(JSON.parse(part?.value ?? '')).toEqual({
      type: 'sync',
      ...keyless,
      part: 1,
      parts: 1,
      userIds: [],
    })
  })

  test('refuse a user whom no part has room for', () => {
    const sync = new Sync({ head, partitions: 3, maxPartBytes: leastBytes + 500 })
    expect(sync.add('x'.repeat(1_000))).toContain('message.maxBytes')
    expect(sync.add('x'.repeat(100))).toBeUndefined()
    sync.close()
  })
})

const idOf = (number: number): string => `"Zoë" ${number}`

describe('the users of a sync are compared with the known members', () => {
  const given = fc.record({
    users: fc.array(fc.nat({ max: 40 }), { maxLength: 60 }),
    known: fc.uniqueArray(fc.nat({ max: 40 })),
    partitions: fc.integer({ min: 1, max: 12 }),
  })

  test('by partition, each user once', () => {
    fc.assert(
      fc.property(given, ({ users, known, partitions }) => {
        const sync = new Sync({ head, partitions, maxPartBytes: 10_000 })
        try {
          for (const user of users) sync.add(idOf(user))
          const total = new Comparison(partitions)
          for (let partition = 0; partition < partitions; partition++) {
            const own = known.map(idOf).filter((id) => partitionOf(id, partitions) === partition)
            total.add(sync.compare(partition, own))
          }
          const named = new Set(users)
          const staying = known.filter((user) => named.has(user)).length
          expect([total.known, total.entering, total.leaving, total.staying, total.isEstimate]).toEqual([
            known.length,
            named.size - staying,
            known.length - staying,
            staying,
            false,
          ])
        } finally {
          sync.close()
        }
      }),
      { numRuns: 100 },
    )
  })

  test('by some partitions, of which the numbers of all are estimated', () => {
    const total = new Comparison(12)
    total.add({ known: 100, entering: 10, staying: 70 })
    total.add({ known: 100, entering: 20, staying: 90 })
    expect([total.known, total.entering, total.leaving, total.staying]).toEqual([1_200, 180, 240, 960])
    expect([total.compared, total.isEstimate]).toEqual([2, true])
  })

  test.each([
    ['nobody is known', 0, 0, false],
    ['all of a few leave', 19, 0, false],
    ['all of some leave', 20, 0, true],
    ['half leave', 40, 20, false],
    ['more than half leave', 41, 20, true],
    ['nearly all of many leave', 1_000_000, 3, true],
    ['many leave, and more stay', 1_000_000, 500_000, false],
  ])('and are implausible or not: %s', (_which, known, staying, isImplausible) => {
    const total = new Comparison(1)
    total.add({ known, entering: 1_000, staying })
    expect(total.isImplausible).toBe(isImplausible)
  })

  test('and an oddity of half of the known ids is none', () => {
    const total = new Comparison(1)
    total.note('auth0|1')
    total.note('auth0|2')
    total.note('a;b')
    total.add({ known: 4, entering: 0, staying: 0 })
    expect([total.isUsual('pipe'), total.isUsual('semicolon'), total.isUsual('tab')]).toEqual([
      true,
      false,
      false,
    ])
  })
})
