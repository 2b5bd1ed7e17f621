import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { catalogSchema } from '../../../src/catalog/catalog-schema.ts'

it('is what schemas/catalog.schema.json shows', async () => {
  const file = new URL('../../../schemas/catalog.schema.json', import.meta.url)
  expect(await readFile(file, 'utf8')).toBe(`${JSON.stringify(catalogSchema, null, 2)}\n`)
})

it('describes every key', () => {
  const undescribed: string[] = []
  const visit = (schema: object, path: string) => {
    if (!('description' in schema)) undescribed.push(path)
    if ('items' in schema && typeof schema.items === 'object' && schema.items !== null)
      visit(schema.items, `${path}[]`)
    if ('properties' in schema && typeof schema.properties === 'object' && schema.properties !== null) {
      for (const [key, value] of Object.entries(schema.properties)) visit(value, `${path}.${key}`)
    }
  }
  visit(catalogSchema, '')
  expect(undescribed).toEqual([])
})
