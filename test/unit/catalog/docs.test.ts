import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { formatFault } from '../../../src/catalog/fault.ts'
import { parseCatalog } from '../../../src/catalog/parse.ts'

const root = resolve(import.meta.dirname, '../../..')

/** Returns the blocks of YAML in a page. */
function yamlIn(page: string): string[] {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(/^ *```yaml\n([^]*?)^ *```/gm)].map(([, block = '']) => block)
}

test.each(['docs/catalog.md', 'README.md'])('the catalogs of %s have no faults', (page) => {
  const catalogs = yamlIn(page).filter((block) => block.includes('destinations:'))
  expect(catalogs).toHaveLength(1)
  for (const text of catalogs) {
    const variables = { CATALOG_PERSONAS_KEY: 'k'.repeat(16), CATALOG_CRM_SECRET: 'secret' }
    const parsed = parseCatalog(text, { file: page, variables })
    expect(parsed.ok ? [] : parsed.faults.map(formatFault)).toEqual([])
  }
})
