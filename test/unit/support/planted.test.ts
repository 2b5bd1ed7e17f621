import { expect, test } from 'vitest'
import { expectNowhere } from '../../support/planted.ts'

const secret = 'planted+text/"x"=&'

test.each([
  ['as it is', `a ${secret} b`],
  ['in JSON', JSON.stringify({ a: secret })],
  ['in JSON in JSON', JSON.stringify({ a: JSON.stringify({ b: secret }) })],
  ['in a URL', `https://example.com/?a=${encodeURIComponent(secret)}`],
  ['in a form', new URLSearchParams({ a: secret }).toString()],
  ['in hex', Buffer.from(`a${secret}`).toString('hex')],
  ['in base64', Buffer.from(secret).toString('base64')],
  ['in base64 after one byte', Buffer.from(`a${secret}b`).toString('base64')],
  ['in base64 after a name', Buffer.from(`ab:cd${secret}:c`).toString('base64')],
  ['in base64url', Buffer.from(`ab${secret}c`).toString('base64url')],
])('a planted text is found %s', (_, text) => {
  const said = [{ where: 'the log', text }]
  expect(() => expectNowhere({ secret }, said)).toThrow('secret is in the log')
  expectNowhere({ secret }, said, (where, what) => where === 'the log' && what === 'secret')
  expectNowhere({ secret: 'another-text' }, said)
})
