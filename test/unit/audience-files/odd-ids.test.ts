import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { OddIds, oddityOf } from '../../../src/audience-files/odd-ids.ts'

const odd: Record<NonNullable<ReturnType<typeof oddityOf>>, readonly string[]> = {
  invisible: ['u\u0000', '\u00001\u0000', 'u\u200b1', '\ufeffu1', 'a\rb', 'u\u00071'],
  nothing: ['NULL', 'null', 'undefined', 'None', 'NaN', 'N/A', '\\N', '#N/A', '#REF!', '#NAME?', '#DIV/0!'],
  header: [
    'userId',
    'user_id',
    'USER ID',
    'id',
    'Customer ID',
    'email',
    'E-Mail',
    'uuid',
    'anonymousId',
    'member-id',
  ],
  rounded: ['1.23457E+12', '5E+15', '1,5e+20'],
  footer: [
    'Total: 1234 rows',
    'Total: 1234',
    'TOTAL = 5',
    '-- end --',
    '--end--',
    '=== 12 users ===',
    '(1234 rows)',
    '(1 row)',
    '1,234 rows selected.',
    '(5 rows affected)',
    '12 rows in set (0.00 sec)',
    'Rows: 12',
    'Time: 12.345 ms',
    '# end of file',
    '// done',
    'EOF',
    'End of data',
    '--------',
    '+------+',
    '===',
    '...',
    'ERROR:  relation "vips" does not exist',
    'ERROR 1064 (42000)',
    'psql: error: connection refused',
    'Traceback (most recent call last)',
    'Query OK, 3 rows affected',
  ],
  markup: ['<td>u1</td>', '<br>', '{"userId":"u1"}', '[', '["u1"'],
  quoted: ["'u1'", '"u1"', '`u1`', '="0017"'],
  semicolon: ['u1;Ada;ada@example.com', ';'.repeat(3) + 'x'],
  tab: ['u1\tAda'],
  pipe: ['u1|Ada', '| u1 |'],
  comma: ['u1,Ada', 'Lovelace, Ada'],
  padded: [' u1', 'u1 ', '  u1  ', 'u1\u00a0'],
}

describe('an id is odd', () => {
  test.each(Object.entries(odd).flatMap(([oddity, ids]) => ids.map((id) => [id, oddity])))(
    '%j: %s',
    (id, oddity) => {
      expect(oddityOf(id)).toBe(oddity)
    },
  )
})

test.each([
  'u1',
  '42',
  '0017',
  '-17',
  '5c2f6d9e-0f6b-4b0e-9f0a-6f1c2d3e4f5a',
  '{5C2F6D9E-0F6B-4B0E-9F0A-6F1C2D3E4F5A}',
  'ada@example.com',
  'user:42',
  'urn:uuid:5c2f6d9e-0f6b-4b0e-9f0a-6f1c2d3e4f5a',
  'cn=ada.o=acme',
  'shop/42#7',
  '+49 30 1234567',
  'Ada Lovelace',
  "O'Brien",
  'Zoë',
  'ユーザー',
  '💸',
  '👩‍🚀',
  'Total',
  'total-17',
  'count1',
  'end-user-17',
  'error-404',
  'nullable',
  'row 17',
  '--Ab3x',
  'a==',
  '1e5',
  'idris',
])('%j is an id like any other', (id) => {
  expect(oddityOf(id)).toBeUndefined()
})

test('ids that programs make are not odd', () => {
  const made = fc.oneof(
    fc.uuid(),
    fc.emailAddress({ size: '-1' }).filter((address) => /^[\w.-]+@/.test(address)),
    fc.nat().map(String),
    fc.base64String({ minLength: 8 }),
    fc.stringMatching(/^[\w-]{21}$/),
    fc.stringMatching(/^[\da-f]{24}$/),
  )
  fc.assert(
    fc.property(made, (id) => {
      expect(oddityOf(id)).toBeUndefined()
    }),
    { numRuns: 5_000 },
  )
})

test('odd ids are counted by kind, each with its first line, and without those that are usual', () => {
  const ids = new OddIds()
  ids.take('u1;Ada', 2)
  ids.take('u2', 3)
  for (let line = 4; line < 1_300; line++) ids.take('u3;Zoë', line)
  ids.take('Total: 1234 rows', 1_300)
  expect(ids.describe(() => false)).toEqual([
    '1,297 contain a semicolon, as rows do that were not split (first in line 2)',
    '1 look like lines of a report, such as a total (line 1300)',
  ])
  expect(ids.describe((oddity) => oddity === 'semicolon')).toHaveLength(1)
})
