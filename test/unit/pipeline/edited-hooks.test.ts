import { describe, expect, test } from 'vitest'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { hookContentsOf } from '../../../src/delivery/hook-content.ts'
import { Delivery, PendingRecord } from '../../../src/pipeline/delivery.ts'
import { forgetEditedHooks, noteHookContents } from '../../../src/pipeline/edited-hooks.ts'
import type { OutboundRecord } from '../../../src/pipeline/pipeline-ports.ts'
import type { RetryState } from '../../../src/retry/retry-state.ts'
import { until } from '../../support/until.ts'
import {
  type Destination,
  destinationOf,
  failed,
  hour,
  refused,
  type Stage,
  stage,
  type StageOptions,
  startMs,
  taken,
  TestRecord,
} from './stage.ts'

/**
 * Tests of hooks whose URL, headers or secret are edited while messages wait. The hooks have ids in the
 * catalog, so they keep these ids.
 */

const unauthorized: Outcome = { kind: 'answer', status: 401 }
const busyForHours: Outcome = { kind: 'answer', status: 503, retryAfterMs: 3 * hour }

type Hook = Destination['hooks'][number]

const spare = hookOf('spare')
const wrong = hookOf('main', { origin: 'https://wrong.example' })
const right = hookOf('main', { origin: 'https://right.example' })

function hookOf(id: string, settings: Partial<Hook> = {}): Hook {
  return { id, origin: `https://${id}.example`, path: '/', headers: [], ...settings }
}

function catalogOf(destination: Destination) {
  return {
    sources: new Map([['space', { enabled: true, kind: 'audiences' as const }]]),
    destinations: new Map([[destination.id, destination]]),
    destinationsBySource: new Map([['space', [destination]]]),
  }
}

type Edited = Stage & {
  edit(settings: Partial<Destination>): void
  /** Answers the request to a host. */
  answerAt(host: string, outcome: Outcome): Promise<void>
  /** The hosts to which requests are under way. */
  hosts(): string[]
  lastWritten(): OutboundRecord
}

function editable(settings: Partial<Destination>, options: StageOptions = {}): Edited {
  let catalog = catalogOf(destinationOf('crm', settings))
  const all = stage({ ...options, catalog: () => catalog })
  return {
    ...all,
    edit: (edit) => (catalog = catalogOf(destinationOf('crm', edit))),
    hosts: () => all.posted.map(({ to }) => to).toSorted(),
    async answerAt(host, outcome) {
      all.posted.find(({ to }) => to === host)?.answer(outcome)
      await all.settle()
    },
    lastWritten() {
      const last = all.written.at(-1)
      if (last === undefined) throw new Error('nothing was written')
      return last
    },
  }
}

/**
 * Makes the first attempt of a message to the hooks `main` and `spare`. `main` gives this outcome, and
 * `spare` fails.
 */
async function waiting(main: Outcome, settings: Partial<Destination>): Promise<Edited> {
  const all = editable(settings)
  all.identify('v')
  const [hook] = settings.hooks ?? []
  await all.answerAt(new URL(hook?.origin ?? '').hostname.replace('.example', ''), main)
  await all.answerAt('spare', failed)
  expect(all.told).toEqual(['parked crm v: failed'])
  return all
}

async function retried(all: Edited, record = all.lastWritten()): Promise<void> {
  all.retry(record)
  await all.settle()
}

/** A record as an earlier version writes it, which knows hooks by their ids alone. */
function ofEarlierVersion(record: OutboundRecord): OutboundRecord {
  const { 'hook-contents': _contents, ...headers } = record.headers
  return { ...record, headers }
}

describe('a hook that failed for good', () => {
  test('is asked again at the next retry when its URL was corrected', async () => {
    const all = await waiting(refused, { hooks: [wrong, spare] })
    all.edit({ hooks: [right, spare] })
    await retried(all)
    expect(all.hosts()).toEqual(['right', 'spare'])
    await all.answerAt('right', taken)
    await all.answerAt('spare', failed)
    expect(all.told).toContain('delivered crm v')
  })

  test.each<[string, Partial<Destination>, Partial<Destination>]>([
    [
      'secret',
      { sharedSecret: 'wrong', hooks: [wrong, spare] },
      { sharedSecret: 'right', hooks: [wrong, spare] },
    ],
    [
      'header',
      { hooks: [{ ...wrong, headers: [['Authorization', 'wrong']] }, spare] },
      { hooks: [{ ...wrong, headers: [['Authorization', 'right']] }, spare] },
    ],
  ])('with 401 is asked again at the next retry when its %s was replaced', async (_, before, after) => {
    const all = await waiting(unauthorized, before)
    all.edit(after)
    await retried(all)
    expect(all.hosts()).toEqual(['spare', 'wrong'])
  })

  test('is left out while it stays as it is, whatever else is edited', async () => {
    const all = await waiting(refused, { hooks: [wrong, spare] })
    all.edit({ hooks: [wrong, { ...spare, path: '/new' }], maxInFlight: 1 })
    await retried(all)
    expect(all.hosts()).toEqual(['spare'])
  })

  test('is left out again when its corrected URL fails for good too', async () => {
    const all = await waiting(refused, { hooks: [wrong, spare] })
    all.edit({ hooks: [right, spare] })
    await retried(all)
    await all.answerAt('right', refused)
    await all.answerAt('spare', failed)
    await retried(all)
    expect(all.hosts()).toEqual(['spare'])
    expect(all.lastWritten().headers['failed-hooks']).toBe('["main"]')
  })

  test('is asked again when its URL was corrected and it is the only hook that is left', async () => {
    const all = await waiting(refused, { hooks: [wrong, spare] })
    all.edit({ hooks: [right] })
    await retried(all)
    expect(all.hosts()).toEqual(['right'])
  })

  test('while its URL was being corrected does not end the message', async () => {
    const all = editable({ hooks: [wrong] })
    all.identify('v')
    all.edit({ hooks: [right] })
    await all.answerAt('wrong', refused)
    expect(all.told).toEqual(['parked crm v: not_before'])
    await retried(all)
    expect(all.hosts()).toEqual(['right'])
    await all.answerAt('right', taken)
    expect(all.told.at(-1)).toBe('delivered crm v')
  })

  test('while something else was being edited ends the message', async () => {
    const all = editable({ hooks: [wrong] })
    all.identify('v')
    all.edit({ hooks: [wrong], maxInFlight: 1 })
    await all.answerAt('wrong', refused)
    expect(all.told).toEqual(['dead crm: failed_for_good', 'behind crm space'])
  })
})

test('a last try during which the URL is corrected is made once more, at the new URL', async () => {
  const all = editable({ hooks: [wrong] })
  all.identify('v')
  await all.answerAt('wrong', failed)
  const written = all.lastWritten()
  await retried(all, { ...written, headers: { ...written.headers, 'expires-at': String(startMs + 1_000) } })
  all.edit({ hooks: [right] })
  await all.answerAt('wrong', failed)
  await until('it is under way', () => all.posted.length > 0)
  expect(all.hosts()).toEqual(['right'])
  await all.answerAt('right', taken)
  expect(all.told).toEqual(['parked crm v: failed', 'delivered crm v'])
  all.pipeline.stop()
})

describe('the time that a hook asked for', () => {
  test('does not hold for its corrected URL', async () => {
    const all = await waiting(busyForHours, { hooks: [wrong, spare] })
    all.edit({ hooks: [right, spare] })
    await retried(all)
    expect(all.hosts()).toEqual(['right', 'spare'])
  })

  test('holds while the hook stays as it is', async () => {
    const all = await waiting(busyForHours, { hooks: [wrong, spare] })
    all.edit({ hooks: [wrong, { ...spare, path: '/new' }] })
    await retried(all)
    expect(all.hosts()).toEqual(['spare'])
  })
})

describe('what a delivery remembers of a hook that was edited', () => {
  const former = destinationOf('crm', { hooks: [wrong, spare] })

  function delivery(settings: Partial<RetryState>): Delivery {
    const pending = new PendingRecord(
      new TestRecord('retry.1m', 0),
      { deliveries: 1, bytes: 0, isPulled: false },
      { ended() {}, detached() {}, onlyNoted: () => false },
    )
    const state: RetryState = {
      sourceId: 'space',
      destinationId: 'crm',
      messageId: 'm',
      kind: 'track',
      nextRung: 1,
      attempts: 1,
      firstSeenMs: startMs,
      expiresAtMs: startMs + hour,
      failedHooks: ['main', 'spare'],
      unsentHooks: [],
      notBeforeMs: new Map([
        ['main', startMs + hour],
        ['spare', startMs + hour],
      ]),
      hookContents: hookContentsOf(former),
      lastOutcome: 'status 404',
      origin: { topic: 'events', partition: 0, offset: 0 },
      ...settings,
    }
    const lane = { cap: 1, laneClass: 'retry' } as const
    return new Delivery(state, { pending, key: null, body: Buffer.from('{}'), lane })
  }

  test('is forgotten, and the hook counts as one that never got the message', () => {
    const one = delivery({})
    forgetEditedHooks(one, destinationOf('crm', { hooks: [right, spare] }))
    expect(one.failedHooks).toEqual(['spare'])
    expect([...one.notBeforeMs.keys()]).toEqual(['spare'])
    expect(one.unsentHooks).toEqual(['main'])
    expect([...(one.hookContents?.keys() ?? [])]).toEqual(['spare'])
  })

  test('is kept while the hook is removed, and until it comes back with another URL', () => {
    const one = delivery({})
    forgetEditedHooks(one, destinationOf('crm', { hooks: [spare] }))
    expect(one.failedHooks).toEqual(['main', 'spare'])
    noteHookContents(one, destinationOf('crm', { hooks: [spare] }))
    forgetEditedHooks(one, former)
    expect(one.failedHooks).toEqual(['main', 'spare'])
    forgetEditedHooks(one, destinationOf('crm', { hooks: [right, spare] }))
    expect(one.failedHooks).toEqual(['spare'])
  })

  test('is kept if the record does not say what the hook was', () => {
    const one = delivery({ hookContents: new Map([['spare', 'another']]) })
    forgetEditedHooks(one, destinationOf('crm', { hooks: [right, spare] }))
    expect(one.failedHooks).toEqual(['main'])
  })
})

describe('beside workers of an earlier version', () => {
  test('a hook that failed for good before the upgrade, and that stays as it is, is left out after it', async () => {
    const all = await waiting(refused, { hooks: [wrong, spare] })
    await retried(all, ofEarlierVersion(all.lastWritten()))
    expect(all.hosts()).toEqual(['spare'])
  })

  test('a time that a hook asked for before the upgrade holds after it', async () => {
    const all = await waiting(busyForHours, { hooks: [wrong, spare] })
    await retried(all, ofEarlierVersion(all.lastWritten()))
    expect(all.hosts()).toEqual(['spare'])
  })

  test('a hook that failed for good before the upgrade is asked again when it is edited after its next attempt', async () => {
    const all = await waiting(refused, { hooks: [wrong, spare] })
    await retried(all, ofEarlierVersion(all.lastWritten()))
    await all.answerAt('spare', failed)
    all.edit({ hooks: [right, spare] })
    await retried(all)
    expect(all.hosts()).toEqual(['right', 'spare'])
  })
})
