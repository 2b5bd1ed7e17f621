import { createHmac } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createSigner } from '../../../src/delivery/signature.ts'

function sign(secret: string, body: string): string {
  return createSigner(secret)(Buffer.from(body))
}

describe('HMAC-SHA1 in hex', () => {
  // RFC 2202, section 3: the cases whose key is text.
  test('of a known key and text', () => {
    expect(sign('Jefe', 'what do ya want for nothing?')).toBe('effcdf6ae5eb2fa2d27416d5f184df9c259a7c79')
  })

  test('of a key of control characters', () => {
    expect(sign('\u000b'.repeat(20), 'Hi There')).toBe('b617318655057264e28bc0b6fb378c8ef146be00')
  })

  // Wikipedia, HMAC: examples.
  test('of a sentence', () => {
    expect(sign('key', 'The quick brown fox jumps over the lazy dog')).toBe(
      'de7c9b85b8b78aa6bc8a7a36f70a90701c9db4d9',
    )
  })
})

describe('the secret and the body are taken as UTF-8', () => {
  test('a secret beyond ASCII is signed with as its UTF-8 bytes', () => {
    const asBytes = createHmac('sha1', Buffer.from([0xc3, 0xb6, 0xf0, 0x9f, 0x98, 0x80]))
      .update('{}')
      .digest('hex')
    expect(sign('ö😀', '{}')).toBe(asBytes)
  })

  test("it is what Segment's sample computes of any secret and body", () => {
    const secrets = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 200 })
    fc.assert(
      fc.property(secrets, fc.jsonValue(), (secret, value) => {
        const body = JSON.stringify(value)
        expect(sign(secret, body)).toBe(createHmac('sha1', secret).update(body).digest('hex'))
      }),
      { numRuns: 1_000 },
    )
  })
})

test('a signer can be used again and again, and one does not touch another', () => {
  const first = createSigner('first')
  const second = createSigner('second')
  const body = Buffer.from('{"a":1}')
  const signature = first(body)
  expect(second(body)).not.toBe(signature)
  expect(first(Buffer.from('{}'))).not.toBe(signature)
  expect(first(body)).toBe(signature)
})

test('only the bytes of the view are signed, not those of the buffer below it', () => {
  const whole = Buffer.from('xx{"a":1}xx')
  expect(createSigner('s')(whole.subarray(2, 9))).toBe(sign('s', '{"a":1}'))
})
