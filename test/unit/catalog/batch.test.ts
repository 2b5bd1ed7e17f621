import { describe, expect, test } from 'vitest'
import type { Batch } from '../../../src/catalog/features/batch.ts'
import { batchInFile } from '../../../src/catalog/features/batch.ts'
import { formatFault } from '../../../src/catalog/fault.ts'
import { parseCatalog } from '../../../src/catalog/parse.ts'

function read(batch: string): { batch: Batch | undefined; faults: readonly string[] } {
  const text = `
sources: [{ id: shop }]
destinations:
  - id: crm
    sources: [shop]
    hooks: [{ url: https://example.com/hook }]
    ${batch}
`
  const parsed = parseCatalog(text, { file: 'catalog.yaml' })
  if (parsed.ok) return { batch: parsed.catalog.destinations.get('crm')?.batch, faults: [] }
  return { batch: undefined, faults: parsed.faults.map(formatFault) }
}

describe('the field batch', () => {
  test('has defaults for each of its fields', () => {
    const batch = { maxMessages: 100, maxBytes: 524_288, maxWaitMs: 200, format: 'json' }
    expect(read('batch: {}')).toEqual({ batch, faults: [] })
    expect(read('batch: { maxMessages: 5, maxWait: 1s }').batch).toEqual({
      ...batch,
      maxMessages: 5,
      maxWaitMs: 1_000,
    })
    expect(read('')).toEqual({ batch: undefined, faults: [] })
  })

  test('is shown as it was written', () => {
    const { batch } = read('batch: { maxMessages: 5, maxBytes: 2048, maxWait: 50ms, format: ndjson }')
    expect(batch && batchInFile(batch)).toEqual({
      maxMessages: 5,
      maxBytes: 2_048,
      maxWait: '50ms',
      format: 'ndjson',
    })
  })

  test.each([
    ['batch: { maxWait: 6s }', 'batch.maxWait: is too long; write a duration of up to 5s, such as 200ms'],
    ['batch: { maxWait: 0s }', 'batch.maxWait: is not written as it has to be'],
    ['batch: { maxMessages: 0 }', 'batch.maxMessages: '],
    ['batch: { maxMessages: 1001 }', 'batch.maxMessages: '],
    ['batch: { maxBytes: 100 }', 'batch.maxBytes: '],
    ['batch: { format: csv }', 'batch.format: '],
    ['batch: 100', 'batch: '],
  ])('is refused: %s', (batch, fault) => {
    const { faults } = read(batch)
    expect(faults).toHaveLength(1)
    expect(faults[0]).toContain(`destinations[0].${fault}`)
  })
})
