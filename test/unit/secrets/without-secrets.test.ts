import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { secretsOf } from '../../../src/secrets/secret-texts.ts'
import { withoutSecrets } from '../../../src/secrets/without-secrets.ts'

const told = (answer: string | Uint8Array, secrets: readonly string[]): string =>
  withoutSecrets(Buffer.from(answer), secrets).toString()

const path = (text: string): string[] => secretsOf([], text)
const header = (value: string): string[] => secretsOf([value], '/')
const slack = '/services/T02/B02/s3cr3tTOKEN99'
const base64 = Buffer.from('ann:pässwörd/1?').toString('base64')

describe('an answer is kept without', () => {
  test.each([
    ['the last segment of a path', path(slack), 'no such hook: s3cr3tTOKEN99', 'no such hook: [redacted]'],
    ['a segment in the middle', path('/in/s3cr3tTOKEN99/orders'), '"s3cr3tTOKEN99"', '"[redacted]"'],
    [
      'two segments',
      path('/a/s3cr3tTOKEN98/s3cr3tTOKEN99'),
      's3cr3tTOKEN98/s3cr3tTOKEN99',
      '[redacted]/[redacted]',
    ],
    [
      'a token in capitals or small letters',
      path(slack),
      'S3CR3TTOKEN99 s3cr3ttoken99',
      '[redacted] [redacted]',
    ],
    ['a decoded segment', path('/in/s3cr3t%2FTOKEN%2099'), 'no s3cr3t/TOKEN 99', 'no [redacted]'],
    ['a part of an encoded segment', path('/in/a%2Fs3cr3tTOKEN99'), 'no s3cr3tTOKEN99', 'no [redacted]'],
    ['an encoded path', path(slack), 'at %2fservices%2FT02%2fB02%2Fs3cr3tTOKEN99', 'at [redacted]'],
    ['an encoded letter of a path', path(slack), 'at /services/T02/B02/s3cr3tTOKEN%39%39', 'at [redacted]'],
    ['a value of a query', path('/in?key=one%2Btwo%2F3'), 'bad key one+two/3', 'bad key [redacted]'],
    [
      'a part of a value of a query',
      path('/in?key=team:s3cr3tTOKEN99'),
      'bad s3cr3tTOKEN99',
      'bad [redacted]',
    ],
    ['a key of a query', path('/in?s3cr3tTOKEN99'), 'bad s3cr3tTOKEN99', 'bad [redacted]'],
    ['an encoded value of a query', path('/in?key=a%2Bb%2Fc'), 'bad key a%2bb%2fc', 'bad key [redacted]'],
    ['a fragment', path('/in#s3cr3tTOKEN99'), 'bad s3cr3tTOKEN99', 'bad [redacted]'],
    ['a login in a URL', path('//ann:s3cr3tTOKEN99@in'), 'bad s3cr3tTOKEN99', 'bad [redacted]'],
    ['a header', header('Bearer planted-secret'), 'bad Bearer planted-secret', 'bad [redacted]'],
    ['what follows a scheme', header('Token  planted-one two'), 'bad planted-one two', 'bad [redacted]'],
    ['a part of a header', header('v=1, k="s3cr3tTOKEN99"'), 'bad s3cr3tTOKEN99', 'bad [redacted]'],
    ['a part between dots', header('eyJhbGci.eyJzdWIi.c2ln'), 'no eyJhbGci in it', 'no [redacted] in it'],
    ['a cookie', header('id=1; session=s3cr3tTOKEN99'), 'bad s3cr3tTOKEN99', 'bad [redacted]'],
    ['Latin-1', header('pässwörd1'), Buffer.from('bad pässwörd1', 'latin1'), 'bad [redacted]'],
    ['base64 of a login', header(`Basic ${base64}`), `bad ${base64}`, 'bad [redacted]'],
    ['a login', header(`Basic ${base64}`), 'bad ann:pässwörd/1?', 'bad [redacted]'],
    ['a password', header(`Basic ${base64}`), 'bad pässwörd/1?', 'bad [redacted]'],
    [
      'a user who has no password',
      header(`Basic ${btoa('planted-key:')}`),
      'bad planted-key!',
      'bad [redacted]!',
    ],
    ['base64 in JSON', header(`Basic ${btoa('ann:abc')}`), '"YW5uOmFiYw\\u003d\\u003D"', '"[redacted]"'],
    ['a path in JSON', path('/in/orders'), String.raw`{"at":"\/in\/orders"}`, '{"at":"[redacted]"}'],
    ['letters in JSON', header('pässwörd'), String.raw`"p\u00e4ssw\u00F6rd"`, '"[redacted]"'],
    [
      'a character of two units in JSON',
      header('planted🙂'),
      String.raw`"planted\ud83d\ude42"`,
      '"[redacted]"',
    ],
    ['a path in HTML', path('/in?a=1&b="2"'), '<p>/in?a=1&amp;b=&quot;2&#x22;</p>', '<p>[redacted]</p>'],
    ['a path in HTML, by numbers', path('/in?a=1&b=2'), '/in&#63;a&#61;1&#38;b&#x3D;2', '[redacted]'],
    ['UTF-16', path(slack), Buffer.from('bad s3cr3tTOKEN99', 'utf16le'), 'b\0a\0d\0 [redacted]'],
    ['a secret twice, overlapping', header('abcabcabc'), 'abcabcabcabc!', '[redacted]!'],
    ['a secret that its end cuts', ['planted-secret'], 'planted-se', '[redacted]'],
    ['a secret that its end cuts in an escape', ['planted-secret'], 'planted%2', '[redacted]'],
  ])('%s', (_, secrets, answer, expected) => {
    expect(told(answer, secrets)).toBe(expected)
  })

  test.each([
    ['plain words', '/services/orders/Customers', 'no such services: orders, Customers, CUSTOMERS'],
    ['short parts', '/a/b/T02/x1y2z3w', 'T02 x1y2z3w'],
    ['words with a hyphen', '/planted-path/of-orders', 'planted-path of-orders'],
  ])('no %s', (_, at, answer) => {
    expect(told(answer, path(at))).toBe(answer)
  })

  test('what stands before or after a secret and looks like the beginning of an escape', () => {
    expect(told('\\nplanted', ['nplanted'])).toBe('\\[redacted]')
    expect(told('%41planted', ['1planted'])).toBe('%4[redacted]')
    expect(told('planted%41', ['planted%4'])).toBe('[redacted]1')
  })
})

const bytes = fc.uint8Array({ maxLength: 40 })
const secret = fc.string({ minLength: 6, maxLength: 40, unit: 'binary' })

describe('whatever stands around a secret,', () => {
  test.each([
    ['as it is', (text: string) => text],
    ['in JSON', (text: string) => JSON.stringify(text).slice(1, -1)],
    ['percent-encoded', (text: string) => encodeURIComponent(text)],
  ])('the secret, %s, is masked', (_, encoded) => {
    fc.assert(
      fc.property(secret, bytes, bytes, (text, before, after) => {
        fc.pre(text.isWellFormed() && encoded(text).length >= 6)
        const answer = Buffer.concat([before, Buffer.from(encoded(text)), after])
        expect(withoutSecrets(answer, [text]).includes('[redacted]')).toBe(true)
      }),
    )
  })
})
