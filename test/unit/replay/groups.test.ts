import { expect, test } from 'vitest'
import type { SourceRecord } from '../../../src/replay/chosen.ts'
import { Groups } from '../../../src/replay/groups.ts'

function add(groups: Groups, destinationId: string | undefined, reason: string): void {
  const place = { partition: 0, key: null, value: Buffer.from('{}') }
  const record: SourceRecord = { ...place, offset: 0, timestampMs: 0, headers: { reason } }
  const headers: Record<string, string> =
    destinationId === undefined ? {} : { 'destination-id': destinationId }
  groups.add(record, { kind: 'send', records: [{ ...place, topic: 'replays', headers }] })
}

test('records are counted by destination and reason, largest group first', () => {
  const groups = new Groups()
  add(groups, 'erp', 'dropped')
  for (let time = 1; time <= 2; time++) add(groups, 'erp', 'expired')
  add(groups, undefined, 'bad_change')
  expect(groups.list).toEqual([
    { destinationId: 'erp', reason: 'expired', records: 2, bytes: 4 },
    { destinationId: 'erp', reason: 'dropped', records: 1, bytes: 2 },
    { destinationId: undefined, reason: 'bad_change', records: 1, bytes: 2 },
  ])
})

test('of very many groups the rest is counted as one', () => {
  const groups = new Groups()
  for (let index = 0; index < 1_500; index++) add(groups, `d-${index}`, 'expired')
  expect(groups.list).toHaveLength(1_001)
  expect(groups.list[0]).toMatchObject({ destinationId: undefined, reason: undefined, records: 500 })
})
