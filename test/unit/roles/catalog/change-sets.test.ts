import { expect, test } from 'vitest'
import type { ChangeSet, StoredObject } from '../../../../src/catalog-log/log.ts'
import { firstSets } from '../../../../src/roles/catalog/change-sets.ts'

function setOf(revision: number, objects: number): ChangeSet {
  const put = Array.from({ length: objects }, (_, index): StoredObject => ({
    kind: 'destination',
    id: `d${index}`,
    version: revision,
    revision,
    definition: {},
  }))
  const head = { revision, changeId: 'c', atMs: 1, by: 'ann', counts: { source: 0, destination: 0 } }
  return { head, put, removed: [] }
}

test('many change sets make several catalogs, in order, and a change set is never split', () => {
  const sizes = [1, 60, 60, 5_000, 1, 99, 1]
  const sets = sizes.map((size, index) => setOf(index, size))
  const taken: number[][] = []
  for (let from = 0; from < sets.length;) {
    const some = firstSets(sets, from)
    taken.push(some.map(({ head }) => head.revision))
    from += some.length
  }
  expect(taken).toEqual([[0, 1], [2], [3], [4, 5], [6]])
})
