import { expect, test } from 'vitest'
import { stage, TestRecord } from './stage.ts'

const value = Buffer.from('{"type":"track","event":"e","anonymousId":"crm"}')

/**
 * Returns what the observer is told about a record of the source `sluice`, which the catalog doesn't have.
 */
async function fateWith(ownSource: string | undefined): Promise<readonly string[]> {
  const all = stage({ sources: { shop: {} }, ...(ownSource !== undefined && { ownSource }) })
  const record = new TestRecord('events', 0, {})
  all.pipeline.accept(record, { key: null, value, headers: { 'source-id': 'sluice' } })
  await all.settle()
  expect(record.settled).toBe(1)
  return all.told
}

test('a notice goes to nobody where the catalog has its source no more, and is no dead letter', async () => {
  expect(await fateWith('sluice')).toEqual(['not routed: source_disabled'])
})

test('any other unknown source is one', async () => {
  expect(await fateWith(undefined)).toEqual(['dead record: unknown_source'])
})
