import { expect, test } from 'vitest'
import { decodeMark } from '../../../src/backfill/marks.ts'
import {
  decodeGrowth,
  encodeGrowth,
  faultOf,
  type Growth,
  nextGeneration,
} from '../../../src/growth/journal.ts'

const growth: Growth = {
  state: 'copying',
  from: { partitions: 3, generation: 1 },
  to: { partitions: 7, generation: 2 },
  groupId: 'sluice',
  digest: 'd',
  waiting: ['retry.1m', 'replays'],
  done: ['topics', 'states', 'waiting/retry.1m'],
  bounds: [1, 2, 3, 4, 5, 6, 7],
}
const before = { partitions: 3, generation: 1 }
const after = { partitions: 7, generation: 2 }

test('a growth is read as it was written, and is no mark', () => {
  const { key, value } = encodeGrowth(growth)
  expect(decodeGrowth(key, value)).toEqual({ ok: true, growth })
  expect(decodeMark(key, value)).toBeUndefined()
})

test('what is in another form is said to be, and what is no growth is nothing', () => {
  const { key } = encodeGrowth(growth)
  expect(decodeGrowth(key, Buffer.from('{"version":2}'))).toEqual({ ok: false })
  expect(decodeGrowth(key, Buffer.from('nothing'))).toEqual({ ok: false })
  expect(decodeGrowth(Buffer.from('["crm","space"]'), Buffer.from('{}'))).toBeUndefined()
})

test.each([
  ['nothing was grown', undefined, before, undefined],
  ['nothing was grown', undefined, after, 'SLUICE_TOPICS_GENERATION=1'],
  ['it is copied', growth, before, '`sluice topics grow 7` again'],
  ['it is copied', growth, after, '--abandon'],
  ['it is switched', { ...growth, state: 'switching' }, after, '`sluice topics grow 7` again'],
  ['it has grown', { ...growth, state: 'grown' }, after, undefined],
  [
    'it has grown',
    { ...growth, state: 'grown' },
    before,
    'SLUICE_TOPICS_PARTITIONS=7 and SLUICE_TOPICS_GENERATION=2',
  ],
  ['it was abandoned', { ...growth, state: 'abandoned' }, before, undefined],
  [
    'it was abandoned',
    { ...growth, state: 'abandoned' },
    after,
    'SLUICE_TOPICS_PARTITIONS=3 and SLUICE_TOPICS_GENERATION=1',
  ],
] satisfies [string, Growth | undefined, typeof before, string | undefined][])(
  'when %s, a start is told whether its settings are right',
  (_when, known, configured, said) => {
    const fault = faultOf(known, configured)
    if (said === undefined) expect(fault).toBeUndefined()
    else expect(fault).toContain(said)
  },
)

test('no two growths make topics of one generation', () => {
  expect(nextGeneration(undefined, 1)).toBe(2)
  expect(nextGeneration({ ...growth, state: 'abandoned' }, 1)).toBe(3)
})
