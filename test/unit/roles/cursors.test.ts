import { expect, test } from 'vitest'
import { createCatalog } from '../../../src/catalog/catalog.ts'
import { statusCalls } from '../../../src/roles/status-calls.ts'
import { placeIn } from '../../../src/roles/content/event-search.ts'
import { adminRequest } from '../../support/admin-request.ts'
import { quietLog } from '../../support/emitted-lines.ts'

// Cursors that no answer has given.

function encoded(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

const hostile = [
  '',
  '.',
  '-',
  '%00',
  'x'.repeat(8_000),
  encoded(null),
  encoded([]),
  encoded({ worst: [] }),
  encoded({ worst: { length: 4 } }),
  encoded({ worst: ['failing', 'many', null, 'crm'] }),
  encoded({ worst: ['failing', 1, {}, 'crm'] }),
  encoded({ worst: ['failing', 1, null, ['crm']] }),
  encoded({ worst: ['toString', 1, null, 'crm'] }),
  encoded({ after: { toString: 1 } }),
  encoded([1, 2, 3, [[-1, 1]]]),
  encoded([1, 2, 3, [[0, 1e300]]]),
  Buffer.from('['.repeat(6_000)).toString('base64url'),
]

test.each(hostile)('a search of events takes %j for no place, or for offsets that there can be', (cursor) => {
  for (const { from, to } of placeIn(cursor)?.rests ?? [])
    expect([from, to].every((one) => Number.isSafeInteger(one) && one >= 0)).toBe(true)
})

test.each(hostile)('the list of destinations refuses %j', async (cursor) => {
  const pauses = { areKnown: true, has: () => false, goneHooks: () => [], pauseOf: () => undefined }
  const picture = { asOfMs: 0, pauses, health: { nowMs: 0, board: undefined } }
  const followed = { current: async () => picture, assessed: () => [] }
  const calls = statusCalls(followed, () => createCatalog([], [], ''), quietLog)
  for (const sort of ['id', 'worst']) {
    const answer = await calls.list_destinations(adminRequest({ query: { cursor, sort } }))
    expect(answer.status).toBe(400)
  }
})
