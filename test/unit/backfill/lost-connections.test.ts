import { expect, test } from 'vitest'
import { lostConnections } from '../../../src/backfill/lost-connections.ts'

const kinds = { fans: 'audiences', shoppers: 'audiences', shop: 'events' }

function catalog(destinations: Record<string, string[]>, sources: Record<string, string> = kinds) {
  return {
    sources: new Map(Object.entries(sources).map(([id, kind]) => [id, { kind }])),
    destinations: new Map(
      Object.entries(destinations).map(([id, connected]) => [id, { sources: connected }]),
    ),
  }
}

const before = catalog({ crm: ['fans', 'shop'], mail: ['fans', 'shoppers'] })

test('nothing is lost where all stays, or something is added', () => {
  expect(lostConnections(before, before)).toEqual([])
  const more = catalog({ crm: ['fans', 'shop', 'shoppers'], mail: ['shoppers', 'fans'], ads: ['fans'] })
  expect(lostConnections(before, more)).toEqual([])
})

test('a destination loses the spaces that it is disconnected from, and no source of events', () => {
  expect(lostConnections(before, catalog({ crm: [], mail: ['shoppers'] }))).toEqual([
    { destinationId: 'crm', spaceId: 'fans' },
    { destinationId: 'mail', spaceId: 'fans' },
  ])
})

test('a destination that is removed loses all of its spaces', () => {
  expect(lostConnections(before, catalog({ crm: ['fans', 'shop'] }))).toEqual([
    { destinationId: 'mail', spaceId: 'fans' },
    { destinationId: 'mail', spaceId: 'shoppers' },
  ])
})

test('a space that is removed, or one of events from now on, is lost to all', () => {
  const without = catalog({ crm: ['shop'], mail: ['shoppers'] }, { shoppers: 'audiences', shop: 'events' })
  expect(lostConnections(before, without)).toEqual([
    { destinationId: 'crm', spaceId: 'fans' },
    { destinationId: 'mail', spaceId: 'fans' },
  ])
  const changed = catalog({ crm: ['fans', 'shop'], mail: ['fans', 'shoppers'] }, { ...kinds, fans: 'events' })
  expect(lostConnections(before, changed)).toEqual([
    { destinationId: 'crm', spaceId: 'fans' },
    { destinationId: 'mail', spaceId: 'fans' },
  ])
})
