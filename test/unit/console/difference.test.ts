import { expect, test } from 'vitest'
import { fieldsText } from '../../../src/console/data/difference.ts'

const field = (name: string, before: unknown, after: unknown) => ({ field: name, before, after })

test.each([
  ['a short change, with its values', [field('state', 'on', 'paused')], 'state: on → paused'],
  ['what was not there', [field('rateLimit.perSecond', null, 5)], 'rateLimit.perSecond: none → 5'],
  ['a list, by its name', [field('sources', ['a'], ['a', 'b'])], 'sources'],
  ['a long text, by its name', [field('filter.condition', 'x'.repeat(31), null)], 'filter.condition'],
  ['a secret, by its name', [field('sharedSecret', '${kept:2026-07-23:01}', null)], 'sharedSecret'],
  [
    'three of many',
    ['a', 'b', 'c', 'd', 'e'].map((name) => field(name, 1, 2)),
    'a: 1 → 2, b: 1 → 2, c: 1 → 2, 2 more',
  ],
  ['a new object, by nothing', [field('id', null, 'crm'), field('name', null, 'CRM')], ''],
  ['nothing', [], ''],
])('one line says %s', (_what, fields, text) => {
  expect(fieldsText(fields)).toBe(text)
})
