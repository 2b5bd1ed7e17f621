import { expect, test } from 'vitest'
import { formatFault } from '../../../src/catalog/fault.ts'
import { type ParsedCatalog, parseCatalog } from '../../../src/catalog/parse.ts'

/** Reads a catalog whose destination `crm` has these lines. */
function parsedWith(...lines: readonly string[]): ParsedCatalog {
  const text = [
    'sources: [{ id: shop }]',
    'destinations:',
    '  - id: crm',
    '    sources: [shop]',
    '    hooks: [{ url: https://example.com/hook }]',
    ...lines.map((line) => `    ${line}`),
  ].join('\n')
  return parseCatalog(text, { file: 'catalog.yaml' })
}

test.each([
  ['2026-09-30', '2026-09-30T00:00:00Z'],
  ['2026-09-30T12:00:00+02:00', '2026-09-30T10:00:00Z'],
  ['"2026-09-30 12:00"', '2026-09-30T12:00:00Z'],
  // A secret that has ended may stay in the catalog.
  ['2001-01-01', '2001-01-01T00:00:00Z'],
])('the end of a secret is read: %s', (written, meant) => {
  const parsed = parsedWith('sharedSecret: a', 'nextSharedSecret: b', `sharedSecretEndsAt: ${written}`)
  expect(parsed.ok && parsed.catalog.destinations.get('crm')?.sharedSecretEndsAtMs).toBe(Date.parse(meant))
})

test.each([
  [
    'is no time',
    ['sharedSecret: a', 'nextSharedSecret: b', 'sharedSecretEndsAt: in a week'],
    ':8:25: crm: destinations[0].sharedSecretEndsAt: is not written as it has to be; write it so: the time from which',
  ],
  [
    'is a day that no month has',
    ['sharedSecret: a', 'nextSharedSecret: b', 'sharedSecretEndsAt: 2026-02-30'],
    ':8:25: crm: destinations[0].sharedSecretEndsAt: is a time that does not exist; write ISO 8601, such as 2026-01-31T12:00:00Z',
  ],
  [
    'leaves nothing to sign with',
    ['sharedSecret: a', 'sharedSecretEndsAt: 2026-02-28'],
    ':7:25: crm: destinations[0].sharedSecretEndsAt: leaves nothing to sign with after it; add nextSharedSecret: ${CATALOG_NAME}, or remove it',
  ],
  [
    'has no secret',
    ['sharedSecretEndsAt: 2026-02-28'],
    ':6:25: crm: destinations[0].sharedSecretEndsAt: is set without a sharedSecret; remove it',
  ],
])('the end of a secret is refused if it %s', (_, lines, fault) => {
  const parsed = parsedWith(...lines)
  const faults = parsed.ok ? [] : parsed.faults.map(formatFault)
  expect(faults).toHaveLength(1)
  expect(faults[0]).toContain(fault)
})
