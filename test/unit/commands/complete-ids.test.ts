import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, expect, test } from 'vitest'

const main = resolve(import.meta.dirname, '../../../src/main.ts')
const folder = mkdtempSync(join(tmpdir(), 'sluice-complete-'))
const file = join(folder, 'catalog.yaml')

writeFileSync(
  file,
  `sources: [{ id: shop }, { id: app }]
destinations:
  - { id: crm, sources: [shop], hooks: [{ url: https://example.com/ }] }
  - { id: crm-eu, sources: [shop], hooks: [{ url: https://example.com/ }] }
  - { id: erp, sources: [shop], hooks: [{ url: https://example.com/ }] }
`,
)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Returns the values that a shell would offer. */
function offered(words: readonly string[], variables: Record<string, string> = {}): readonly string[] {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'complete', '--', ...words], {
    encoding: 'utf8',
    cwd: folder,
    env: { PATH: process.env['PATH'], SLUICE_CATALOG_FILE: file, ...variables },
  })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return stdout
    .split('\n')
    .flatMap((line) => (line === '' || line.startsWith(':') ? [] : [line.split('\t')[0] ?? '']))
}

test.each([
  ['an argument', ['destinations', 'pause', 'cr'], ['crm', 'crm-eu']],
  ['an argument after an option', ['destinations', 'test', '--json', ''], ['crm', 'crm-eu', 'erp']],
  ['an argument of another kind', ['sources', 'get', ''], ['shop', 'app']],
  ['an option', ['log', 'tail', '--destination', 'e'], ['erp']],
  ['an option of another kind', ['send', '--source', 's'], ['shop']],
  [
    'an option of a command without such an argument',
    ['mappings', 'test', '--destination', 'cr'],
    ['crm', 'crm-eu'],
  ],
])('%s is completed with the ids of the catalog', (_what, words, ids) => {
  expect(offered(words)).toEqual(ids)
})

test('without a catalog that can be read at once, nothing is offered and nothing is said', () => {
  expect(offered(['destinations', 'pause', ''], { SLUICE_CATALOG_FILE: join(folder, 'none.yaml') })).toEqual(
    [],
  )
  const unreachable = {
    SLUICE_CATALOG_SOURCE: 'topic',
    SLUICE_ADMIN_URL: 'http://127.0.0.1:1',
    SLUICE_ADMIN_TOKEN: 'x'.repeat(40),
  }
  expect(offered(['destinations', 'pause', ''], unreachable)).toEqual([])
  expect(offered(['destinations', 'pause', ''], { SLUICE_CATALOG_SOURCE: 'nowhere' })).toEqual([])
  expect(offered(['destinations', 'pau'])).toContain('pause')
})
