import { expect, test } from 'vitest'
import { createWorkerMetrics } from '../../../src/telemetry/worker-metrics.ts'
import { showBehind } from '../../../src/telemetry/show-state.ts'

const catalog = {
  sources: new Map([
    ['fans', { kind: 'audiences' }],
    ['shoppers', { kind: 'audiences' }],
    ['shop', { kind: 'events' }],
  ]),
  destinations: new Map([
    ['crm', { sources: ['fans', 'shop'] }],
    ['mail', { sources: ['fans', 'shoppers'] }],
  ]),
}

async function shown(perDestination: boolean, ...behind: readonly (readonly string[])[]): Promise<string[]> {
  const metrics = createWorkerMetrics({ perDestination })
  for (const pairs of behind) {
    const connections = pairs.map((pair) => {
      const [destinationId = '', spaceId = ''] = pair.split(' ')
      return { destinationId, spaceId }
    })
    showBehind(metrics, connections, catalog)
  }
  const text = await metrics.registry.getSingleMetricAsString('sluice_destination_needs_backfill')
  return text.split('\n').filter((line) => !line.startsWith('#'))
}

test('each destination of the catalog that needs a backfill is a series, as long as it needs one', async () => {
  expect(await shown(true, ['crm fans', 'mail fans', 'mail shoppers', 'removed fans'])).toEqual([
    'sluice_destination_needs_backfill{destination="crm"} 1',
    'sluice_destination_needs_backfill{destination="mail"} 1',
  ])
  expect(await shown(true, ['crm fans', 'mail fans'], ['mail fans'])).toEqual([
    'sluice_destination_needs_backfill{destination="mail"} 1',
  ])
})

test('none is shown for a space that the destination does not have, or that is none any more', async () => {
  expect(await shown(false, ['crm shoppers', 'crm shop', 'crm gone'])).toEqual([
    'sluice_destination_needs_backfill 0',
  ])
})

test('without labels they are counted, down to none', async () => {
  expect(await shown(false, ['crm fans', 'mail fans', 'mail shoppers', 'removed fans'])).toEqual([
    'sluice_destination_needs_backfill 2',
  ])
  expect(await shown(false, ['crm fans'], [])).toEqual(['sluice_destination_needs_backfill 0'])
})
