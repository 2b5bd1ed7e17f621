import { describe, expect, test } from 'vitest'
import { parseCatalog } from '../../../../src/catalog/parse.ts'
import { urlsDigestOf } from '../../../../src/catalog/auto-pause.ts'
import { HealthBoard } from '../../../../src/health/health-board.ts'
import { encodeHealth, type HealthRecord } from '../../../../src/health/health-record.ts'
import { readConfig } from '../../../../src/config/read.ts'
import { assess } from '../../../../src/roles/operations/destination-conditions.ts'
import {
  destinationData,
  listDestinations,
  type ListQuery,
} from '../../../../src/roles/operations/destination-list.ts'
import { type Pauses, pausesOf } from '../../../../src/roles/operations/known-pauses.ts'

const parsed = parseCatalog(
  `
sources: [{ id: shop }, { id: app }]
destinations:
  - id: crm
    name: Customer relations
    labels: { tenant: acme }
    sources: [shop, app]
    sharedSecret: hidden-secret
    filter: { types: [track] }
    rateLimit: { perSecond: 50 }
    hooks: [{ id: primary, url: 'https://example.com/hidden-path?hidden-query', headers: { X-Key: hidden-key } }]
  - { id: erp, sources: [shop], state: off, hooks: [{ url: https://example.com/ }] }
  - { id: mail, sources: [app], hooks: [{ url: https://example.com/ }] }
  - { id: sms, sources: [app], state: paused, hooks: [{ url: https://example.com/ }] }
`,
  { file: 'catalog.yaml', variables: {} },
)
if (!parsed.ok) throw new Error('the catalog has faults')
const { catalog } = parsed
const none: Pauses = { areKnown: true, has: () => false, goneHooks: () => [], pauseOf: () => undefined }
const nothing = { board: undefined, nowMs: 0 }

function listed(query: ListQuery, paused = none) {
  return listDestinations(assess(catalog, paused, nothing), query)
}

function idsOf(query: Partial<ListQuery>, paused = none) {
  const { listed: part, next } = listed({ limit: 100, ...query }, paused)
  return { ids: part.map(({ destination, state }) => `${destination.id} ${state}`), next: next?.id }
}

describe('the list', () => {
  test('has all destinations in the order of the catalog', () => {
    expect(idsOf({})).toEqual({ ids: ['crm on', 'erp off', 'mail on', 'sms paused'], next: undefined })
  })

  test.each([
    [{ destinationId: 'mail' }, ['mail on']],
    [{ destinationId: 'nobody' }, []],
    [{ sourceId: 'app' }, ['crm on', 'mail on', 'sms paused']],
    [{ state: 'paused' }, ['sms paused']],
    [{ sourceId: 'app', state: 'on' }, ['crm on', 'mail on']],
    [{ search: 'RELATIONS' }, ['crm on']],
    [{ search: 'example.com' }, ['crm on', 'erp off', 'mail on', 'sms paused']],
    [{ search: 'hidden' }, []],
    [{ label: { key: 'tenant', value: 'acme' } }, ['crm on']],
    [{ state: 'unknown' }, ['crm on', 'mail on']],
    [{ state: 'waiting' }, []],
  ])('has only what %o asks for', (query, ids) => {
    expect(idsOf(query)).toEqual({ ids, next: undefined })
  })

  test('shows those that Sluice has paused, and finds them by this state', () => {
    const paused: Pauses = { ...none, has: ({ id }) => ['mail', 'erp'].includes(id) }
    expect(idsOf({}, paused).ids).toEqual(['crm on', 'erp off', 'mail auto_paused', 'sms paused'])
    expect(idsOf({ state: 'auto_paused' }, paused).ids).toEqual(['mail auto_paused'])
  })

  test.each([1, 2, 3, 4, 5])('comes in parts of %i that have each destination once', (limit) => {
    const ids: string[] = []
    let after: string | undefined
    do {
      const part = idsOf({ limit, after })
      expect(part.ids.length).toBeLessThanOrEqual(limit)
      ids.push(...part.ids)
      after = part.next
    } while (after !== undefined)
    expect(ids).toEqual(['crm on', 'erp off', 'mail on', 'sms paused'])
  })

  test('goes on after an id that the catalog does not have any more', () => {
    expect(idsOf({ after: 'gone', limit: 1 })).toEqual({ ids: ['mail on'], next: 'mail' })
  })
})

/** Returns all destinations, of which these have so many messages that wait. */
function waitingOf(messages: Record<string, number>) {
  const board = new HealthBoard()
  const process: HealthRecord = {
    kind: 'process',
    writer: 'w:1:a',
    word: { units: [0], of: 1, version: '1', lag: 0 },
  }
  const words = Object.entries(messages).map(([destinationId, count]): HealthRecord => ({
    kind: 'destination',
    destinationId,
    writer: 'w:1:a',
    word: { waiting: { messages: count, replayed: 0, oldestMs: 0, perSecond: 1 } },
  }))
  for (const [offset, record] of [process, ...words].entries())
    board.take({ offset, ...encodeHealth(record) }, 0)
  return assess(catalog, none, { board, nowMs: 0 })
}

function partOf(messages: Record<string, number>, query: Partial<ListQuery>) {
  const { listed: part, next } = listDestinations(waitingOf(messages), {
    isByWorst: true,
    limit: 2,
    ...query,
  })
  return { ids: part.map(({ destination: { id } }) => id), next }
}

describe('the worst first', () => {
  test('a part goes on after the last destination of the one before, whatever becomes of others', () => {
    const first = partOf({ mail: 30, crm: 20 }, {})
    expect(first.ids).toEqual(['mail', 'crm'])
    // One of the first part got better. It comes again, and what has not come yet still comes.
    expect(partOf({ crm: 20 }, { afterStanding: first.next, limit: 3 }).ids).toEqual(['sms', 'mail', 'erp'])
    // One of the first part got worse.
    expect(partOf({ mail: 30, crm: 40 }, { afterStanding: first.next }).ids).toEqual(['sms', 'erp'])
    // A destination of the first part is gone.
    const without = waitingOf({ mail: 30, crm: 20 }).filter(({ destination: { id } }) => id !== 'mail')
    const { listed: left } = listDestinations(without, {
      isByWorst: true,
      afterStanding: first.next,
      limit: 2,
    })
    expect(left.map(({ destination: { id } }) => id)).toEqual(['sms', 'erp'])
  })
})

function isShown(urls: string, autoPause: string): boolean {
  const read = readConfig({ env: { SLUICE_NOTICES_AUTO_PAUSE: autoPause } })
  if (!read.ok) throw new Error(read.message)
  const pause = { sinceMs: 1, atMs: 2, urls, lastOutcome: 'timeout', readTo: 0 }
  const pauses = pausesOf(
    { ok: true, value: [{ destinationId: 'mail', pause }] },
    { ok: true, value: new Map() },
    read.config,
  )
  return listed({ destinationId: 'mail', limit: 1 }, pauses).listed[0]?.state === 'auto_paused'
}

describe('a pause', () => {
  const mail = catalog.destinations.get('mail')
  const digest = mail === undefined ? '' : urlsDigestOf(mail)

  test('is shown if workers honour it', () => expect(isShown(digest, '120h')).toBe(true))
  test('of other URLs is not shown', () => expect(isShown('other', '120h')).toBe(false))
  test('is not shown while automatic pauses are off', () => expect(isShown(digest, 'off')).toBe(false))
})

test('a destination is shown without its secrets', () => {
  const [crm] = listed({ limit: 1 }).listed
  const data = crm && destinationData(crm, nothing)
  expect(data).toEqual({
    id: 'crm',
    name: 'Customer relations',
    state: 'on',
    labels: { tenant: 'acme' },
    sources: ['shop', 'app'],
    filter: { types: ['track'], events: undefined },
    isSigned: true,
    strategy: 'all',
    maxInFlight: 64,
    rateLimit: { perSecond: 50, burst: 50 },
    batch: null,
    hooks: [
      {
        id: 'primary',
        origin: 'https://example.com',
        login: null,
        tokenOrigin: null,
        certificateEndsAt: null,
        hasOwnAuthorities: false,
        isGone: false,
        failing: null,
      },
    ],
    // Nobody tells what waits, and that is said.
    health: {
      condition: 'unknown',
      since: null,
      why: 'not all workers tell',
      nextTryAt: null,
      secretEndsAt: null,
      asOf: null,
      waiting: null,
      oldestWaitingSince: null,
      drainedInSeconds: null,
      inFlightLimit: null,
      perSecondLimit: null,
      retrying: null,
      retryingAtMost: null,
      isLimitLowered: null,
    },
  })
  expect(JSON.stringify(data)).not.toContain('hidden')
})
