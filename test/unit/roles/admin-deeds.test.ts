import { expect, test } from 'vitest'
import { createCatalog } from '../../../src/catalog/catalog.ts'
import { parseCatalog } from '../../../src/catalog/parse.ts'
import { readConfig } from '../../../src/config/read.ts'
import { bulkCalls } from '../../../src/roles/bulk-calls.ts'
import { destinationCalls } from '../../../src/roles/destination-calls.ts'
import { replayCalls } from '../../../src/roles/replay-calls.ts'
import type { PauseDesk } from '../../../src/roles/operations/pause-desk.ts'
import type { ReplayDesk } from '../../../src/roles/operations/replay-desk.ts'
import { adminRequest } from '../../support/admin-request.ts'

/** What somebody asks for is in the log, with who asks, before Kafka has it: also if Kafka then doesn't answer. */

const hooks = '[{ url: https://crm.example/ }]'
const parsed = parseCatalog(
  `{ sources: [{ id: shop }], destinations: [{ id: crm, sources: [shop], hooks: ${hooks} }] }`,
  {
    file: 'catalog.yaml',
  },
)
const catalog = () => (parsed.ok ? parsed.catalog : createCatalog([], [], ''))
const read = readConfig({ env: {} })
if (!read.ok) throw new Error(read.message)
const { config } = read

const away = async (): Promise<never> => {
  throw new Error('no broker answers')
}

function openLog() {
  const told: unknown[] = []
  const tell = (fields: object, message?: string): void => void told.push({ ...fields, message })
  return { told, log: { info: tell, warn: () => undefined, error: tell } }
}

test('a replay, and its stop', async () => {
  const done = { records: 3, bytes: 30, leftOut: {} }
  const selection = { from: 'dead-letters', destinationId: 'crm' } as const
  const order = { id: 'r', selection, perSecond: 5, by: 'ann', atMs: 0, ranges: [] }
  const job = { order, wish: { state: 'run', by: 'ann', atMs: 0 }, progress: undefined } as const
  const desk: ReplayDesk = {
    tell: away,
    tokens: away,
    tellTokens: away,
    list: away,
    audit: away,
    preview: async () => ({
      ok: true,
      value: { selection, ranges: [], tally: done, groups: [], isAgain: false, isComplete: true },
    }),
    create: away,
    show: async () => ({ ok: true, value: job }),
    wish: away,
    stop: async () => undefined,
  }
  const { told, log } = openLog()
  const calls = replayCalls(desk, catalog, log)
  const body = { selection: { of: 'dead-letters', destination: 'crm' }, perSecond: 5 }
  expect(await calls.create_replay(adminRequest({ body }))).toMatchObject({ status: 503 })
  expect(await calls.stop_replay(adminRequest({ params: { replay: 'r' } }))).toMatchObject({ status: 503 })
  expect(told).toMatchObject([
    { message: 'a replay was requested', by: 'ann', perSecond: 5 },
    { message: 'a replay was asked to stop or to resume', by: 'ann', replay: 'r', state: 'stop' },
  ])
})

test('a try of what waits, for one destination and for many', async () => {
  const desk: PauseDesk = {
    paused: async () => ({ ok: true, value: [] }),
    gone: async () => ({ ok: true, value: new Map() }),
    health: away,
    resume: away,
    retryNow: away,
    drop: away,
    stop: async () => undefined,
  }
  const { told, log } = openLog()
  const { retry_destination: retry } = destinationCalls(
    { desk, followed: { renew: away } },
    catalog,
    config,
    log,
  )
  expect(await retry(adminRequest({ params: { destination: 'crm' } }))).toMatchObject({ status: 503 })
  const followed = { current: away, assessed: () => [] }
  const { change_destinations: change } = bulkCalls({ followed, desk, atDesk: away, catalog, config, log })
  const body = { selection: { label: 'tenant=acme' }, do: 'retry-now' }
  expect(await change(adminRequest({ body }))).toMatchObject({ status: 503 })
  expect(told).toMatchObject([
    { message: 'messages of a destination are to be tried now', by: 'ann', destination: 'crm' },
    { message: 'the same is to be done to many destinations', by: 'ann', deed: 'retry-now' },
  ])
})
