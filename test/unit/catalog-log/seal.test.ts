import { expect, test } from 'vitest'
import { newKeyLine } from '../../../src/catalog-log/keys.ts'
import { seal, type SealedPlace, unseal } from '../../../src/catalog-log/seal.ts'
import { catalogKeys } from '../../support/catalog-log.ts'

const line = newKeyLine('k1')
const keys = catalogKeys(line)
const place: SealedPlace = {
  installation: 'sluice.catalog',
  object: 'destination/crm',
  field: 'sharedSecret',
  origin: 'https://example.com',
}
const sealed = seal('the-secret', place, { keys, atMs: 1_700_000_000_000 })

test('a sealed text is opened at its place, also after a key was added', () => {
  expect(sealed).not.toContain('the-secret')
  expect(unseal(sealed, place, keys)).toBe('the-secret')
  expect(unseal(sealed, place, catalogKeys(newKeyLine('k2'), line))).toBe('the-secret')
  expect(seal('the-secret', place, { keys, atMs: 1_700_000_000_000 })).not.toBe(sealed)
})

test.each<[string, Partial<SealedPlace>]>([
  ['another installation', { installation: 'other.catalog' }],
  ['another object', { object: 'destination/erp' }],
  ['another field', { field: 'nextSharedSecret' }],
  ['another host', { origin: 'https://evil.example' }],
  ['another port', { origin: 'https://example.com:8443' }],
  ['no encryption', { origin: 'http://example.com' }],
  ['no host', { origin: '' }],
])('a sealed text that is carried to %s is not opened', (_what, other) => {
  expect(() => unseal(sealed, { ...place, ...other }, keys)).toThrow('was sealed for another place')
})

test('a sealed text that was changed, or whose key is another one, is not opened', () => {
  const parts = sealed.split(':')
  const withPart = (index: number, text: string): string => parts.with(index, text).join(':')
  const bytes = Buffer.from(parts[4] ?? '', 'base64url')
  for (let at = 0; at < bytes.length; at++) {
    const flipped = Buffer.from(bytes)
    flipped[at] = (flipped[at] ?? 0) ^ 1
    expect(() => unseal(withPart(4, flipped.toString('base64url')), place, keys)).toThrow('or was changed')
  }
  // Neither is its time: it says since when a secret is set.
  expect(() => unseal(withPart(3, '1'), place, keys)).toThrow('or was changed')
  expect(() => unseal(withPart(4, ''), place, keys)).toThrow('is not sealed')
  expect(() => unseal(withPart(4, 'AAAA'), place, keys)).toThrow('or was changed')
  expect(() => unseal(sealed, place, catalogKeys(newKeyLine('k1')))).toThrow('or was changed')
  expect(() => unseal(sealed, place, catalogKeys(newKeyLine('k3')))).toThrow('which catalog.keysFile lacks')
  expect(() => unseal('the-secret', place, keys)).toThrow('is not sealed')
})
