import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { KeptAnswer } from '../../../../src/delivery/send/kept-answer.ts'
import { secretsOf } from '../../../../src/secrets/secret-texts.ts'
import { withoutSecrets } from '../../../../src/secrets/without-secrets.ts'

const told = (text: string, secrets: readonly string[]): string =>
  withoutSecrets(Buffer.from(text), secrets).toString()

const secret = fc.string({ minLength: 6, maxLength: 40 }).filter((text) => !'[redacted]'.includes(text))

describe('what is kept of an answer', () => {
  test('has no secret in it, wherever it was', () => {
    fc.assert(
      fc.property(secret, fc.string(), fc.string(), (one, before, after) => {
        expect(told(`${before}${one}${after}`, [one])).not.toContain(one)
      }),
    )
  })

  test('has no beginning of a secret where it breaks off', () => {
    expect(told('wrong token: planted-sec', ['planted-secret'])).toBe('wrong token: [redacted]')
    expect(told('wrong token: pla', ['planted-secret'])).toBe('wrong token: pla')
  })

  test('is the answer itself where no secret is in it, short ones and none at all included', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(told(text, ['', 'json', 'qqqqqqqqqq'])).toBe(Buffer.from(text).toString())
      }),
    )
  })

  test('has no part of a longer secret that another one is a part of', () => {
    expect(told('a Bearer planted-secret b', ['planted-secret', 'Bearer planted-secret'])).toBe(
      'a [redacted] b',
    )
  })

  test.each([
    { values: ['Bearer planted-secret'], repeated: 'planted-secret' },
    { values: [`Basic ${btoa('ann:planted-secret')}`], repeated: 'planted-secret' },
    { values: [`Basic ${btoa('ann:planted-secret')}`], repeated: 'ann:planted-secret' },
    { values: [], repeated: '/services/T0/planted-secret?token=planted-token' },
    { values: [], repeated: '/services/T0/planted-secret' },
    { values: [], repeated: 'planted-token' },
  ])('does not repeat $repeated of a request', ({ values, repeated }) => {
    const secrets = secretsOf(values, '/services/T0/planted-secret?token=planted-token')
    expect(told(`Cannot POST ${repeated}`, secrets)).toBe('Cannot POST [redacted]')
  })

  test('knows paths of any shape, which a hook that is refused may have', () => {
    expect(secretsOf([], '//')).toEqual(['//'])
    expect(secretsOf([], '\u{13EBA}')).toEqual(['\u{13EBA}'])
    expect(secretsOf([], '//planted-secret?a=planted-token')).toEqual([
      '//planted-secret?a=planted-token',
      '//planted-secret',
      '?a=planted-token',
      'planted-token',
    ])
  })

  test('is cut behind its secrets, and takes no more memory than it has', () => {
    const kept = new KeptAnswer(20, ['planted-secret'])
    expect(kept.begin({ kind: 'answer', status: 500 }, undefined)).toBe(true)
    expect(kept.take(Buffer.from('0123456789012345plan'))).toBe(false)
    expect(kept.take(Buffer.from('ted-secret and more'))).toBe(false)
    const body = kept.outcome()?.body
    expect(Buffer.from(body ?? []).toString()).toBe('0123456789012345[red')
    expect(body?.buffer.byteLength).toBe(20)
  })

  const userId = 'Zoë-№-漢字-🙂🙂'
  const user = Buffer.from(userId)
  const keptOf = (maxBytes: number, answer: Buffer, ofUser: Buffer = user): string => {
    const one = new KeptAnswer(maxBytes, ['planted-secret'], { headers: [], userId: ofUser })
    if (!one.begin({ kind: 'answer', status: 500 }, undefined)) return 'nothing'
    one.take(answer)
    return Buffer.from(one.outcome()?.body ?? []).toString()
  }

  test.each(Array.from(user.keys()))('has no user whose id the limit cuts at byte %i', (at) => {
    const before = 'x'.repeat(40 - at)
    expect(keptOf(40, Buffer.from(`${before}${userId} and more`))).toBe(`${before}[redacted]`.slice(0, 40))
  })

  test.each(Array.from(user.keys()).slice(4))(
    'has no beginning of a user whose id breaks off at byte %i',
    (at) => {
      const answer = Buffer.concat([Buffer.from('no user '), user.subarray(0, at)])
      expect(keptOf(100, answer)).toBe('no user [redacted]')
    },
  )

  test.each([1, 2, 3, 4, 5, 6, 7])('has no half of a character at its end, after %i bytes', (maxBytes) => {
    expect('é漢🙂'.startsWith(keptOf(maxBytes, Buffer.from('é漢🙂é漢🙂')))).toBe(true)
  })

  test('has no signature, and no part of one', () => {
    const headers = ['webhook-signature', 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=']
    const one = new KeptAnswer(100, [], { headers, userId: null })
    one.begin({ kind: 'answer', status: 401 }, undefined)
    one.take(Buffer.from('expected abc, not K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN'))
    expect(Buffer.from(one.outcome()?.body ?? []).toString()).toBe('expected abc, not [redacted]')
  })

  test('is nothing if the id of the user is too long to be looked for', () => {
    expect(keptOf(20, Buffer.from('no such user'), Buffer.alloc(1_000, 'a'))).toBe('no such user')
    expect(keptOf(20, Buffer.from('no such user'), Buffer.alloc(1_001, 'a'))).toBe('nothing')
  })

  test.each([
    { status: 200, encoding: undefined },
    { status: 500, encoding: 'gzip' },
  ])('is nothing of $status with the encoding $encoding', ({ status, encoding }) => {
    const kept = new KeptAnswer(20, [])
    expect(kept.begin({ kind: 'answer', status }, encoding)).toBe(false)
    expect(kept.take(Buffer.from('x'.repeat(20_000)))).toBe(false)
    expect(kept.outcome()).toBeUndefined()
  })
})
