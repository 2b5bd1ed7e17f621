import { expect, test } from 'vitest'
import { fieldDifferences } from '../../../src/catalog-log/difference.ts'

test('definitions are compared field by field, records of a list by their position, other lists as a whole', () => {
  const before = {
    id: 'crm',
    sources: ['shop'],
    rateLimit: { perSecond: 5, burst: 10 },
    hooks: [{ url: 'https://a.example', headers: { 'X-A': '1', 'X B': '2' } }],
  }
  const after = {
    id: 'crm',
    sources: ['shop', 'blog'],
    rateLimit: { perSecond: 6, burst: 10 },
    hooks: [{ url: 'https://a.example', headers: { 'X-A': '1', 'X B': '3' } }, { url: 'https://b.example' }],
    state: 'off',
  }
  expect(fieldDifferences(before, before)).toEqual([])
  expect(fieldDifferences(before, after)).toEqual([
    { field: 'sources', before: ['shop'], after: ['shop', 'blog'] },
    { field: 'rateLimit.perSecond', before: 5, after: 6 },
    { field: 'hooks[0].headers."X B"', before: '2', after: '3' },
    { field: 'hooks[1]', before: undefined, after: { url: 'https://b.example' } },
    { field: 'state', before: undefined, after: 'off' },
  ])
  expect(fieldDifferences(undefined, { id: 'crm' })).toEqual([
    { field: 'id', before: undefined, after: 'crm' },
  ])
})
