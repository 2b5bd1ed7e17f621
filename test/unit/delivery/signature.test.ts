import { createHmac } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createSigner, type Signing, webhookIdOf } from '../../../src/delivery/signature.ts'

type Headers = Readonly<Record<string, string>>

/** Returns the headers that sign a message. */
function headersOf(
  signing: Partial<Signing> & { sharedSecret: string },
  { body, messageId = 'm-1', nowMs = 0 }: { body: string; messageId?: string; nowMs?: number },
): Headers {
  const sign = createSigner({ nextSharedSecret: undefined, standardWebhooks: false, ...signing })
  return named(sign({ messageId, body: Buffer.from(body) }, nowMs))
}

function named(list: readonly string[]): Headers {
  const pairs = list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1]]] : []))
  return Object.fromEntries(pairs)
}

function xSignature(sharedSecret: string, body: string): string | undefined {
  return headersOf({ sharedSecret }, { body })['X-Signature']
}

/** Returns the signature that Node's own HMAC gives. */
function standardSignature(
  key: Buffer,
  { id, seconds, body }: { id: string; seconds: number; body: string },
) {
  return `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')}`
}

describe('X-Signature: HMAC-SHA1 in hex', () => {
  // RFC 2202, section 3: the cases whose key is text.
  test('of a known key and text', () => {
    expect(xSignature('Jefe', 'what do ya want for nothing?')).toBe(
      'effcdf6ae5eb2fa2d27416d5f184df9c259a7c79',
    )
  })

  test('of a key of control characters', () => {
    expect(xSignature('\u000b'.repeat(20), 'Hi There')).toBe('b617318655057264e28bc0b6fb378c8ef146be00')
  })

  // Examples from the article on HMAC in Wikipedia.
  test('of a sentence', () => {
    expect(xSignature('key', 'The quick brown fox jumps over the lazy dog')).toBe(
      'de7c9b85b8b78aa6bc8a7a36f70a90701c9db4d9',
    )
  })

  test('is the one header, unless there are to be more', () => {
    expect(Object.keys(headersOf({ sharedSecret: 's' }, { body: '{}' }))).toEqual(['X-Signature'])
  })
})

describe('the secret and the body are taken as UTF-8', () => {
  test('a secret beyond ASCII is signed with as its UTF-8 bytes', () => {
    const asBytes = createHmac('sha1', Buffer.from([0xc3, 0xb6, 0xf0, 0x9f, 0x98, 0x80]))
      .update('{}')
      .digest('hex')
    expect(xSignature('ö😀', '{}')).toBe(asBytes)
  })

  test('a secret that is written as whsec_ and base64 is signed with as it is written', () => {
    expect(xSignature('whsec_YQ==', '{}')).toBe(createHmac('sha1', 'whsec_YQ==').update('{}').digest('hex'))
  })

  test("it is what Segment's sample computes of any secret and body", () => {
    const secrets = fc.string({ unit: 'grapheme', maxLength: 200, size: 'max' })
    fc.assert(
      fc.property(secrets, fc.jsonValue(), fc.boolean(), (sharedSecret, value, isStandard) => {
        const body = JSON.stringify(value)
        const signing = { sharedSecret: `s${sharedSecret}`, standardWebhooks: isStandard }
        expect(headersOf(signing, { body })['X-Signature']).toBe(
          createHmac('sha1', `s${sharedSecret}`).update(body).digest('hex'),
        )
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('Standard Webhooks', () => {
  // An example from the tests of the published packages.
  const example = {
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    message: {
      messageId: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      body: '{"test": 2432232314}',
      nowMs: 1_614_265_330_000,
    },
    signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  }

  test('gives the signature of the published example', () => {
    expect(
      headersOf({ sharedSecret: example.secret, standardWebhooks: true }, example.message),
    ).toMatchObject({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': example.signature,
    })
  })

  test('adds its three headers to X-Signature', () => {
    expect(Object.keys(headersOf({ sharedSecret: 's', standardWebhooks: true }, { body: '{}' }))).toEqual([
      'X-Signature',
      'webhook-id',
      'webhook-timestamp',
      'webhook-signature',
    ])
  })

  test('the timestamp is the whole second of the attempt', () => {
    const sign = createSigner({ sharedSecret: 's', nextSharedSecret: undefined, standardWebhooks: true })
    const at = (nowMs: number) =>
      named(sign({ messageId: 'm', body: Buffer.from('{}') }, nowMs))['webhook-timestamp']
    expect([1_999, 1_000, 2_000, 1_999, 1_700_000_000_999].map(at)).toEqual([
      '1',
      '1',
      '2',
      '1',
      '1700000000',
    ])
  })

  test('with two secrets: X-Signature of the first, and webhook-signature of both', () => {
    const message = { body: '{"a":1}', messageId: 'm-1', nowMs: 5_000 }
    const signing = { sharedSecret: 'now', standardWebhooks: true }
    const before = headersOf(signing, message)
    const between = headersOf({ ...signing, nextSharedSecret: 'next' }, message)
    const after = headersOf({ ...signing, sharedSecret: 'next' }, message)
    expect(between['X-Signature']).toBe(before['X-Signature'])
    expect(between['webhook-signature']).toBe(`${before['webhook-signature']} ${after['webhook-signature']}`)
    expect(between['webhook-id']).toBe(after['webhook-id'])
  })

  test.each([true, false])(
    'from the end of the first secret on, the second signs alone: %s',
    (standardWebhooks) => {
      const signing = { standardWebhooks, sharedSecret: 'now', nextSharedSecret: 'next' }
      const headersAt = (nowMs: number, more: Partial<Signing> = { sharedSecretEndsAtMs: 5_000 }) =>
        headersOf({ ...signing, ...more }, { body: '{"a":1}', nowMs })
      expect(headersAt(4_999)).toEqual(headersAt(4_999, {}))
      const alone = { sharedSecret: 'next', nextSharedSecret: undefined }
      for (const nowMs of [5_000, 5_001, 1e12]) expect(headersAt(nowMs)).toEqual(headersAt(nowMs, alone))
    },
  )

  test('is what HMAC-SHA256 gives for any keys, id, time and body', () => {
    const key = fc
      .uint8Array({ minLength: 1, maxLength: 150, size: 'max' })
      .map((bytes) => Buffer.from(bytes))
    const body = fc.oneof(
      fc.jsonValue().map((value) => JSON.stringify(value)),
      fc.constant('x'.repeat(20_000)),
    )
    const seconds = fc.integer({ min: 0, max: 9_999_999_999 })
    fc.assert(
      fc.property(key, key, fc.string(), seconds, body, (first, second, messageId, at, text) => {
        const headers = headersOf(
          {
            sharedSecret: `whsec_${first.toString('base64')}`,
            nextSharedSecret: `whsec_${second.toString('base64')}`,
            standardWebhooks: true,
          },
          { body: text, messageId, nowMs: at * 1_000 + 999 },
        )
        const id = headers['webhook-id'] ?? ''
        const signed = { id, seconds: at, body: text }
        expect(headers['webhook-signature']).toBe(
          `${standardSignature(first, signed)} ${standardSignature(second, signed)}`,
        )
      }),
      { numRuns: 1_000 },
    )
  })

  test('a secret that is no key is a bug of who let it through', () => {
    const signing = { sharedSecret: 'whsec_*', nextSharedSecret: undefined, standardWebhooks: true }
    expect(() => createSigner(signing)).toThrow('its rules refuse')
    expect(() => createSigner({ ...signing, sharedSecret: 's', nextSharedSecret: 'whsec_' })).toThrow(
      'its rules',
    )
  })
})

describe('the id of a message', () => {
  test.each(['a', 'm-1', 'AZaz09_-', 'x'.repeat(100), '01890b2e-6d1c-7c3a-9b43-0242ac120002'])(
    'is its messageId: %s',
    (messageId) => {
      expect(webhookIdOf(messageId)).toBe(messageId)
    },
  )

  test.each([
    '',
    'a.b',
    'a b',
    'a\n',
    '\r\nX-A: b',
    'ü',
    '😀',
    '\ud800',
    'x'.repeat(101),
    'sluice.events-0-1',
  ])('is a hash of %j', (messageId) => {
    expect(webhookIdOf(messageId)).toMatch(/^[A-Za-z0-9_-]{43}$/)
  })

  test('can stand in a header, has no dot, and is another one for another message', () => {
    const ids = fc.uniqueArray(fc.oneof(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' })), {
      selector: (text) => text.toWellFormed(),
      minLength: 2,
      maxLength: 2,
    })
    fc.assert(
      fc.property(ids, (messageIds) => {
        const [first = '', second = ''] = messageIds.map(webhookIdOf)
        expect(first).toMatch(/^[A-Za-z0-9_-]{1,100}$/)
        expect(second).not.toBe(first)
      }),
      { numRuns: 2_000 },
    )
  })

  test('is the same when the message has been through Kafka, as UTF-8', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (messageId) => {
        expect(webhookIdOf(Buffer.from(messageId).toString())).toBe(webhookIdOf(messageId))
      }),
      { numRuns: 2_000 },
    )
  })
})

test('a signer can be used again and again, and one does not touch another', () => {
  const first = createSigner({ sharedSecret: 'first', nextSharedSecret: 'next', standardWebhooks: true })
  const second = createSigner({ sharedSecret: 'second', nextSharedSecret: 'next', standardWebhooks: true })
  const message = { messageId: 'm', body: Buffer.from('{"a":1}') }
  const headers = first(message, 0)
  expect(second(message, 0)).not.toEqual(headers)
  expect(first({ messageId: 'm-2', body: Buffer.from('{}') }, 1_000)).not.toEqual(headers)
  expect(first(message, 0)).toEqual(headers)
})

test('only the bytes of the view are signed, not those of the buffer below it', () => {
  const whole = Buffer.from('xx{"a":1}xx')
  const sign = createSigner({ sharedSecret: 's', nextSharedSecret: undefined, standardWebhooks: true })
  const part = named(sign({ messageId: 'm-1', body: whole.subarray(2, 9) }, 0))
  expect(part).toEqual(headersOf({ sharedSecret: 's', standardWebhooks: true }, { body: '{"a":1}' }))
})
