import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  keySetOf,
  newSigningKey,
  publicKeysOf,
  readSigningKey,
  signingKeyBreach,
} from '../../../src/catalog/features/signing-keys.ts'
import { signingKeyLines } from '../../../src/commands/signing-key.ts'
import { createRequestHeaders } from '../../../src/delivery/request-headers.ts'

// Signatures of Ed25519 (Standard Webhooks, v1a), and the keys for them.

type Signing = Parameters<typeof createRequestHeaders>[0]

function headersOf(signing: Partial<Signing>, body: string, messageId = 'm-1', nowMs = 1_700_000_000_999) {
  const whole = { sharedSecret: undefined, nextSharedSecret: undefined, standardWebhooks: false, ...signing }
  const list = createRequestHeaders(whole, false)({ messageId, body: Buffer.from(body), attempts: 1 }, nowMs)
  return list.flatMap((name, at) => (at % 2 === 0 ? [[name, list[at + 1] ?? ''] as const] : []))
}

/** Verifies a signature as a receiver does that has only the public key. */
function isSignedBy(publicKey: string, headers: Readonly<Record<string, string>>, body: string): boolean {
  const x = Buffer.from(publicKey.replace('whpk_', ''), 'base64').toString('base64url')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  const signed = Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`)
  return (headers['webhook-signature'] ?? '')
    .split(' ')
    .filter((one) => one.startsWith('v1a,'))
    .some((one) => verify(null, signed, key, Buffer.from(one.slice(4), 'base64')))
}

function publicKeyOf(key: string): string {
  return publicKeysOf([key])[0]?.text ?? ''
}

// RFC 8032, section 7.1, test 1.
const seed = Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex')
const known = Buffer.from('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', 'hex')

describe('a key', () => {
  test('has the public key of RFC 8032, and the thumbprint of RFC 8037', () => {
    const [key] = publicKeysOf([`whsk_${seed.toString('base64')}`])
    expect(key?.text).toBe(`whpk_${known.toString('base64')}`)
    expect(key?.id).toBe('kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k')
  })

  test('is the same with its public key after it, and in PEM', () => {
    const whole = `whsk_${Buffer.concat([seed, known]).toString('base64')}`
    const pem = readSigningKey(whole)?.export({ type: 'pkcs8', format: 'pem' }).toString() ?? ''
    expect([publicKeyOf(whole), publicKeyOf(pem)]).toEqual([
      `whpk_${known.toString('base64')}`,
      `whpk_${known.toString('base64')}`,
    ])
    expect([signingKeyBreach(whole), signingKeyBreach(pem)]).toEqual([undefined, undefined])
  })

  test.each([
    ['nothing', 'whsk_'],
    ['no base64', 'whsk_*'],
    ['a byte less', `whsk_${seed.subarray(1).toString('base64')}`],
    ['a public key', `whpk_${known.toString('base64')}`],
    ['a shared secret', 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD3bsZXHNp2rE='],
    [
      'a key of another kind',
      generateKeyPairSync('ec', { namedCurve: 'P-256' })
        .privateKey.export({ type: 'pkcs8', format: 'pem' })
        .toString(),
    ],
    ['the public key of another key', `whsk_${Buffer.concat([seed, seed]).toString('base64')}`],
  ])('is refused if it is %s', (_, text) => {
    expect(signingKeyBreach(text)).toBeDefined()
  })

  test('that is made is a new one each time, and has no fault', () => {
    const [one, other] = [newSigningKey(), newSigningKey()]
    expect(one).not.toBe(other)
    expect(signingKeyBreach(one)).toBeUndefined()
  })
})

describe('webhook-signature', () => {
  const [first, second] = [newSigningKey(), newSigningKey()]

  test('verifies with the public key, whatever the body', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string({ maxLength: 200 }), (value, messageId) => {
        const body = JSON.stringify(value)
        const headers = Object.fromEntries(headersOf({ signingKeys: [first] }, body, messageId))
        expect(isSignedBy(publicKeyOf(first), headers, body)).toBe(true)
        expect(isSignedBy(publicKeyOf(second), headers, body)).toBe(false)
        expect(isSignedBy(publicKeyOf(first), headers, `${body} `)).toBe(false)
      }),
    )
  })

  test('has a signature by each key, after those by secrets', () => {
    const signing = { sharedSecret: 's', standardWebhooks: true, signingKeys: [first, second] }
    const headers = headersOf(signing, '{}')
    expect(headers.map(([name]) => name)).toEqual([
      'X-Signature',
      'webhook-id',
      'webhook-timestamp',
      'webhook-signature',
    ])
    const all = Object.fromEntries(headers)
    expect(all['webhook-signature']?.split(' ').map((one) => one.split(',')[0])).toEqual(['v1', 'v1a', 'v1a'])
    expect([first, second].map((key) => isSignedBy(publicKeyOf(key), all, '{}'))).toEqual([true, true])
    const without = Object.fromEntries(headersOf({ ...signing, signingKeys: undefined }, '{}'))
    expect(all['webhook-signature']?.split(' ')[0]).toBe(without['webhook-signature'])
  })

  test('is the only signature of a destination without a secret', () => {
    expect(headersOf({ signingKeys: [first] }, '{}').map(([name]) => name)).toEqual([
      'webhook-id',
      'webhook-timestamp',
      'webhook-signature',
    ])
  })

  test('stands beside X-Signature without Standard Webhooks by secrets', () => {
    const headers = headersOf({ sharedSecret: 's', signingKeys: [first] }, '{}')
    expect(headers.map(([name]) => name)[0]).toBe('X-Signature')
    expect(Object.fromEntries(headers)['webhook-signature']).toMatch(/^v1a,[^ ]+$/)
  })
})

test('the command prints a private key with its public key, and the public key of a given one', () => {
  const made = JSON.parse(signingKeyLines(undefined, true)[0] ?? '')
  expect(publicKeyOf(made.privateKey)).toBe(made.publicKey)
  expect(signingKeyLines(made.privateKey, false)).toEqual([
    `public key, for receivers: ${made.publicKey}`,
    `key id: ${made.keyId}`,
  ])
  expect(() => signingKeyLines('whsk_*', false)).toThrow('is not a private key of Ed25519')
})

test('a set of JSON Web Keys has no private part', () => {
  const [key] = keySetOf(publicKeysOf([newSigningKey()])).keys
  expect(Object.keys(key ?? {})).toEqual(['kty', 'crv', 'x', 'kid', 'use', 'alg', 'whpk'])
})
