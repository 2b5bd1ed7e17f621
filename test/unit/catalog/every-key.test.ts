import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Catalog } from '../../../src/catalog/catalog.ts'
import { formatFault } from '../../../src/catalog/fault.ts'
import { parseCatalog } from '../../../src/catalog/parse.ts'

function parsed(text: string): Catalog {
  const result = parseCatalog(text, { file: 'catalog.yaml', variables: {} })
  if (!result.ok) throw new Error(result.faults.map(formatFault).join('\n'))
  return result.catalog
}

const full = `
sources:
  - id: shop
    name: Web shop
    kind: events
    enabled: false
    writeKeys: [abc, def]
  - id: space
    kind: audiences
destinations:
  - id: crm
    name: CRM of Acme
    state: paused
    sources: [space, shop]
    filter: { types: [track, identify], events: [Order Completed] }
    sharedSecret: s3cret
    nextSharedSecret: n3xt
    signing: { standardWebhooks: true }
    strategy: failover
    maxInFlight: 8
    batch: { maxMessages: 50, maxBytes: 2048, maxWait: 2s, format: ndjson }
    hooks:
      - url: https://example.com/hook?x=1
        id: main
        headers: { X-Team: crm, x-empty: "" }
      - url: https://example.com/hook
  - id: mail
    sources: [shop]
    hooks: [{ url: http://mail.example }]
`

test('every key is read', () => {
  const catalog = parsed(full)
  expect([...catalog.sources.values()]).toEqual([
    {
      id: 'shop',
      name: 'Web shop',
      kind: 'events',
      enabled: false,
      writeKeys: ['abc', 'def'],
      serverKeys: [],
    },
    { id: 'space', name: 'space', kind: 'audiences', enabled: true, writeKeys: [], serverKeys: [] },
  ])
  expect(catalog.destinations.get('crm')).toEqual({
    id: 'crm',
    name: 'CRM of Acme',
    state: 'paused',
    sources: ['space', 'shop'],
    filter: { types: ['track', 'identify'], events: ['Order Completed'] },
    sharedSecret: 's3cret',
    nextSharedSecret: 'n3xt',
    standardWebhooks: true,
    strategy: 'failover',
    maxInFlight: 8,
    maxInFlightSick: 8,
    batch: { maxMessages: 50, maxBytes: 2048, maxWaitMs: 2_000, format: 'ndjson' },
    hooks: [
      {
        id: 'main',
        url: 'https://example.com/hook?x=1',
        origin: 'https://example.com',
        path: '/hook?x=1',
        headers: [
          ['X-Team', 'crm'],
          ['x-empty', ''],
        ],
      },
      {
        id: '3c465794',
        url: 'https://example.com/hook',
        origin: 'https://example.com',
        path: '/hook',
        headers: [],
      },
    ],
  })
})

test('a destination has its defaults', () => {
  expect(parsed(full).destinations.get('mail')).toMatchObject({
    name: 'mail',
    state: 'on',
    filter: undefined,
    sharedSecret: undefined,
    nextSharedSecret: undefined,
    standardWebhooks: false,
    strategy: 'all',
    maxInFlight: 64,
    rateLimit: undefined,
    hooks: [{ url: 'http://mail.example/', path: '/' }],
  })
})

test('the destinations of each source are found, in the order of the catalog', () => {
  const { destinationsBySource, destinations } = parsed(full)
  expect([...destinationsBySource.keys()]).toEqual(['shop', 'space'])
  expect(destinationsBySource.get('shop')).toEqual([...destinations.values()])
  expect(destinationsBySource.get('shop')?.[0]).toBe(destinations.get('crm'))
  expect(destinationsBySource.get('space')).toEqual([destinations.get('crm')])
})

test('the version of a catalog is made from its text', () => {
  expect(parsed(full).version).toBe(createHash('sha256').update(full).digest('hex').slice(0, 12))
})
