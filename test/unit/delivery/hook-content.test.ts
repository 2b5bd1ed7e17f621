import { describe, expect, test } from 'vitest'
import type { DestinationDefinition } from '../../../src/delivery/endpoint.ts'
import { hookContentsOf } from '../../../src/delivery/hook-content.ts'

type Settings = Partial<DestinationDefinition>

const hook = {
  id: 'main',
  origin: 'https://crm.example',
  path: '/hook?key=1',
  headers: [
    ['Authorization', 'Bearer one'],
    ['X-Tenant', 'shop'],
  ],
} as const

function destination(settings: Settings = {}): DestinationDefinition {
  return {
    id: 'crm',
    state: 'on',
    filter: undefined,
    maxInFlight: 64,
    strategy: 'all',
    sharedSecret: 'a secret',
    nextSharedSecret: undefined,
    standardWebhooks: false,
    rateLimit: undefined,
    hooks: [hook],
    ...settings,
  }
}

function contentOf(settings?: Settings): string {
  return [...hookContentsOf(destination(settings)).values()].join(' ')
}

/** Returns the number of guesses for which `contents` gives the same as for the secret. */
function leftOf(guesses: readonly string[], secret: string, contents: (guess: string) => string): number {
  const seen = contents(secret)
  return guesses.filter((guess) => contents(guess) === seen).length
}

describe('the content of a hook', () => {
  test('is short, and one that a record header may have', () => {
    expect(contentOf()).toMatch(/^[0-9a-f]{12}$/)
  })

  test.each<[string, Settings]>([
    ['its host', { hooks: [{ ...hook, origin: 'https://crm2.example' }] }],
    ['its port', { hooks: [{ ...hook, origin: 'https://crm.example:8443' }] }],
    ['its path', { hooks: [{ ...hook, path: '/hooks?key=1' }] }],
    ['its query', { hooks: [{ ...hook, path: '/hook?key=2' }] }],
    ['a header', { hooks: [{ ...hook, headers: [['Authorization', 'Bearer two'], hook.headers[1]] }] }],
    ['the name of a header', { hooks: [{ ...hook, headers: [['Auth', 'Bearer one'], hook.headers[1]] }] }],
    ['the number of headers', { hooks: [{ ...hook, headers: [hook.headers[0]] }] }],
    ['its secret', { sharedSecret: 'another secret' }],
    ['the lack of a secret', { sharedSecret: undefined }],
    ['its next secret', { nextSharedSecret: 'a next secret' }],
    ['the kind of its signatures', { standardWebhooks: true }],
    ['a signing key', { signingKeys: ['whsk_one'] }],
    ['a login', { hooks: [{ ...hook, login: { kind: 'basic', username: 'a', password: '' } }] }],
    ['a client certificate', { hooks: [{ ...hook, tls: { certificate: 'one', key: 'two' } }] }],
    ['an authority', { hooks: [{ ...hook, tls: { ca: 'one' } }] }],
    [
      'the form of its batches',
      { batch: { maxMessages: 10, maxBytes: 1_024, maxWaitMs: 10, format: 'json' } },
    ],
  ])('depends on %s', (_, edit) => {
    expect(contentOf(edit)).not.toBe(contentOf())
  })

  test('depends on which of two secrets is the next one', () => {
    const secrets = { sharedSecret: 'one', nextSharedSecret: 'two' }
    const exchanged = { sharedSecret: 'two', nextSharedSecret: 'one' }
    expect(contentOf(exchanged)).not.toBe(contentOf(secrets))
  })

  test.each<[string, Settings]>([
    ['its id', { hooks: [{ ...hook, id: 'other' }] }],
    [
      'the order and the case of its headers',
      {
        hooks: [{ ...hook, headers: [['x-tenant', 'shop'], hook.headers[0]] }],
      },
    ],
    ['the limits of its destination', { maxInFlight: 1, rateLimit: { perSecond: 1, burst: 1 } }],
    ['the state of its destination', { state: 'paused' }],
    ['the id of its destination', { id: 'another' }],
  ])('does not depend on %s', (_, edit) => {
    expect(contentOf(edit)).toBe(contentOf())
  })
})

describe('contents, however many are known, tell no more than twelve bits', () => {
  // With twelve bits, about three of these guesses can't be told from the secret. They are always the same.
  const guesses = Array.from({ length: 12_000 }, (_, nth) => `secret ${nth}`)
  const secret = 'secret 0'
  const hooks = ['https://a.example', 'https://b.example'].map((origin) => ({ ...hook, origin }))

  test('of a secret with which the hooks of two destinations are signed, and which was replaced', () => {
    const few = leftOf(guesses, secret, (guess) =>
      ['a', 'b']
        .map((id) => contentOf({ id, sharedSecret: guess, hooks }))
        .concat(contentOf({ sharedSecret: 'a former secret', nextSharedSecret: guess }))
        .join(),
    )
    expect(few).toBeGreaterThan(1)
  })

  test('of a header beside which others were edited', () => {
    const few = leftOf(guesses, secret, (guess) =>
      ['1', '2']
        .map((version) =>
          contentOf({
            hooks: [
              {
                ...hook,
                headers: [
                  ['X-Key', guess],
                  ['X-Version', version],
                ],
              },
            ],
          }),
        )
        .join(),
    )
    expect(few).toBeGreaterThan(1)
  })
})
