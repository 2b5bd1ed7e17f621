import { expect, test } from 'vitest'
import { createToken, findToken, readStoredToken, readTokens } from '../../../src/admin/tokens.ts'

const whole = {
  sha256: 'a'.repeat(64),
  scope: 'all',
  madeBy: 'ann',
  madeAt: '2026-07-29T09:30:00Z',
  family: 'x',
}

test.each([
  ['read', undefined, false, ''],
  ['operate', undefined, true, ''],
  ['admin', undefined, true, ''],
  ['read', true, true, ' content'],
  ['operate', false, false, ' no-content'],
  ['admin', true, true, ''],
] as const)(
  'a token of the file with the right %s, made with content %s, sees content: %s',
  (right, wish, sees, end) => {
    const { token, line } = createToken('ann', right, wish)
    expect(line).toMatch(new RegExp(`^ann ${right} sha256:[0-9a-f]{64}${end}$`))
    const read = readTokens(line)
    expect(read.ok && findToken(read.tokens, token)).toMatchObject({ right, seesContent: sees })
  },
)

test('a line that ends with anything else is refused', () => {
  const { line } = createToken('ann', 'read')
  for (const end of [' contents', ' content x', ' no', 'content'])
    expect(readTokens(`${line}${end}`)).toMatchObject({ ok: false })
})

test('a stored token from before sees content by its right, and one that says something unknown is not read', () => {
  expect(readStoredToken({ ...whole, id: 'x', right: 'read' })).toMatchObject({ seesContent: false })
  expect(readStoredToken({ ...whole, id: 'x', right: 'operate' })).toMatchObject({ seesContent: true })
  expect(readStoredToken({ ...whole, id: 'x', right: 'operate', content: false })).toMatchObject({
    seesContent: false,
  })
  expect(readStoredToken({ ...whole, id: 'x', right: 'operate', content: 'no' })).toBeUndefined()
})
