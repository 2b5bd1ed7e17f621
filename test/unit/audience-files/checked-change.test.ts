import { describe, expect, test } from 'vitest'
import { defaultLimits } from '../../../src/message/limits.ts'
import { readChange } from '../../../src/audience-files/checked-change.ts'

const nowMs = Date.parse('2026-01-31T12:00:00.000Z')
const membership = {
  type: 'membership',
  audienceId: 'aud_1',
  audienceName: 'Big spenders',
  userId: 'u1',
  member: true,
  changedAt: '2026-01-31T12:00:00.000Z',
}
const trait = {
  type: 'trait',
  traitId: 'trait_1',
  traitName: 'Plan',
  userId: 'u1',
  value: { plan: 'gold', '': [1, null] },
  changedAt: '2026-01-31T12:00:00.000Z',
}

const read = (text: string, limits = defaultLimits) => readChange(text, { limits, nowMs })

const without = (change: Readonly<Record<string, unknown>>, field: string): object =>
  Object.fromEntries(Object.entries(change).filter(([name]) => name !== field))

describe('a change', () => {
  test.each([
    ['a membership', membership],
    ['one with a key', { ...membership, audienceKey: 'vip' }],
    ['one whose key is null', { ...membership, audienceKey: null }],
    ['a trait', trait],
    ['a trait whose key is null', { ...trait, traitKey: null }],
    ['a trait without a value any more', { ...trait, value: null }],
    ['a name of symbols with a key', { ...membership, audienceName: '💸!', audienceKey: 'rich' }],
    ['one a little ahead', { ...membership, changedAt: '2026-01-31T12:04:59Z' }],
  ])('is taken: %s', (_what, change) => {
    const text = JSON.stringify(change)
    expect(read(`  ${text}\r`)).toEqual({ ok: true, userId: 'u1', value: text })
  })

  test('may have any key in its value, `__proto__` too', () => {
    const text = JSON.stringify(trait).replace('"plan"', '"__proto__"')
    expect(read(text)).toEqual({ ok: true, userId: 'u1', value: text })
  })

  test.each([
    ['no object', [1], 'no object'],
    ['no type', without(membership, 'type'), 'no type membership or trait'],
    ['a sync', { ...membership, type: 'sync' }, 'sluice audience sync'],
    ['no user', without(membership, 'userId'), 'has no userId'],
    ['no time', without(trait, 'changedAt'), 'has no changedAt'],
    ['no value', without(trait, 'value'), 'has no value'],
    ['an unknown field', { ...membership, key: 'x' }, 'has a field "key"'],
    ['a member that is text', { ...membership, member: 'true' }, 'neither true nor false'],
    [
      'an empty name',
      { ...membership, audienceName: '' },
      'needs text of 1 to 1,000 characters as audienceName',
    ],
    ['a null id', { ...trait, traitId: null }, 'needs text of 1 to 1,000 characters as traitId'],
    ['a long id', { ...trait, traitId: 'x'.repeat(1_001) }, 'needs text of 1 to 1,000 characters as traitId'],
    [
      'a user that is a number',
      { ...membership, userId: 1 },
      'needs text of 1 to 1,000 characters as userId',
    ],
    ['a name of symbols only', { ...membership, audienceName: '💸!' }, 'give it a key'],
    ['half a character', { ...membership, userId: '\ud800' }, 'lone surrogate'],
    ['a time that is none', { ...membership, changedAt: 'yesterday' }, 'no time'],
    ['a day that is none', { ...membership, changedAt: '2026-02-30' }, 'no time'],
    ['a time ahead', { ...membership, changedAt: '2026-01-31T12:05:01Z' }, 'more than 5 minutes ahead'],
  ])('is refused: %s', (_what, change, problem) => {
    expect(read(JSON.stringify(change))).toEqual({ ok: false, problem: expect.stringContaining(problem) })
  })

  test('is refused with a number that JSON can not write again', () => {
    expect(read(JSON.stringify(trait).replace('"gold"', '1e999'))).toMatchObject({
      ok: false,
      problem: expect.stringContaining('1.7e308'),
    })
  })

  test('is held to the limits of messages', () => {
    const text = JSON.stringify({ ...trait, value: [[[1]], { a: 1, b: 2 }] })
    expect(read(text, { ...defaultLimits, maxBytes: 100 })).toMatchObject({ ok: false })
    expect(read(text, { ...defaultLimits, maxDepth: 3 })).toMatchObject({ ok: false })
    expect(read(text, { ...defaultLimits, maxKeys: 7 })).toMatchObject({ ok: false })
    expect(read(text)).toMatchObject({ ok: true })
  })
})
