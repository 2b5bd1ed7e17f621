import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { readConfig } from '../../../src/config/read.ts'
import { checkCatalog } from '../../../src/commands/catalog/catalog-check.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-catalog-'))
const path = join(folder, 'catalog.yaml')
afterAll(() => rmSync(folder, { recursive: true }))

async function check(text: string, { mayLackVariables = false, isDefault = false } = {}) {
  writeFileSync(path, text)
  const read = readConfig({
    env: { SLUICE_CATALOG_FILE: path, SLUICE_DELIVERY_ALLOW_ADDRESSES: '10.0.0.0/8' },
  })
  if (!read.ok) throw new Error(read.message)
  return checkCatalog(read.config, { path: isDefault ? undefined : path, mayLackVariables })
}

const good = `
sources: [{ id: shop }]
destinations:
  - { id: crm, sources: [shop], hooks: [{ url: 'http://10.0.0.1/' }, { url: https://example.com/ }] }
  - { id: erp, sources: [shop], state: off, hooks: [{ url: https://example.com/ }] }
`

test.each([true, false])('a catalog without faults is described', async (isDefault) => {
  expect(await check(good, { isDefault })).toEqual([
    expect.stringMatching(
      new RegExp(
        `^${path} has no faults: 1 source, 2 destinations \\(1 off\\), 3 URLs, version [0-9a-f]{12}$`,
      ),
    ),
  ])
})

const signed = `
sources: [{ id: shop, serverKeys: ['\${CATALOG_TEST_UNSET_KEY}'] }]
destinations:
  - id: crm
    sources: [shop]
    # \${CATALOG_TEST_COMMENT}
    sharedSecret: whsec_\${CATALOG_TEST_UNSET_A}
    nextSharedSecret: \${CATALOG_TEST_UNSET_B}
    signing: { standardWebhooks: true }
    hooks: [{ url: https://example.com/, headers: { Authorization: 'Bearer \${CATALOG_TEST_UNSET_A}' } }]
`

test('variables that are not set are faults, unless they are allowed', async () => {
  await expect(check(signed)).rejects.toThrow(/has 4 faults:[^]*CATALOG_TEST_UNSET_B, which is not set/)
  expect((await check(signed, { mayLackVariables: true })).slice(1)).toEqual([
    'These variables are not set here: CATALOG_TEST_UNSET_KEY, CATALOG_TEST_UNSET_A, CATALOG_TEST_UNSET_B',
  ])
})

test('all faults of a catalog are listed with their lines, also private addresses', async () => {
  const bad = good.replace('10.0.0.1', '192.168.0.1').replace('state: off', 'state: of')
  await expect(check(bad)).rejects.toThrow(
    new RegExp(`${path} has 2 faults:\n.*:4:\\d+: .*not public.*\n.*:5:\\d+: .*state: .*$`),
  )
})

test('a file that is not there is a fault, also if variables may lack', async () => {
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error(read.message)
  const none = join(folder, 'none')
  await expect(checkCatalog(read.config, { path: none, mayLackVariables: true })).rejects.toThrow(
    `${none} has 1 fault:\n${none}: cannot be read (ENOENT)`,
  )
})

test('a variable that is not set may be the URL of a hook, or a part of it', async () => {
  const text = `
sources: [{ id: shop }]
destinations:
  - id: crm
    sources: [shop]
    hooks: [{ url: '\${CATALOG_TEST_UNSET_URL}' }, { url: 'https://example.com/\${CATALOG_TEST_UNSET_TOKEN}' }]
`
  await expect(check(text)).rejects.toThrow(/has 2 faults:[^]*hooks\[0\].url: .*CATALOG_TEST_UNSET_URL/)
  expect((await check(text, { mayLackVariables: true })).slice(1)).toEqual([
    'These variables are not set here: CATALOG_TEST_UNSET_URL, CATALOG_TEST_UNSET_TOKEN',
  ])
})

function textOf(...ids: string[]): string {
  const entries = ids.map(
    (id) => `  - { id: ${id}, sources: [shop], hooks: [{ url: https://example.com/ }] }\n`,
  )
  return `sources: [{ id: shop }]\ndestinations:\n${entries.join('')}`
}

test('a file is compared with an earlier version, and refused if it lacks many of its destinations', async () => {
  const old = join(folder, 'old.yaml')
  writeFileSync(old, textOf('a', 'b', 'c'))
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error(read.message)
  const compare = (text: string) => {
    writeFileSync(path, text)
    return checkCatalog(read.config, { path, against: old, mayLackVariables: false })
  }
  await expect(compare(textOf('a'))).rejects.toThrow(
    `lacks 2 of the 3 destinations of ${old}: b, c; restore the whole file; if they are to be removed, write expect: { destinations: 1 } into it`,
  )
  const edited = textOf('a', 'd').replace('sources: [shop]', 'state: off, sources: [shop]')
  expect((await compare(`expect: { destinations: 2 }\n${edited}`)).slice(1)).toEqual([
    `Changed destinations, compared with ${old}: -b; -c; a: on → off; +d`,
  ])
  expect((await compare(textOf('a', 'b', 'c'))).slice(1)).toEqual([`No entry differs from ${old}`])
})
