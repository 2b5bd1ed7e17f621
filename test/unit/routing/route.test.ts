import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { messageKinds, type MessageKind } from '../../../src/message/message-schemas.ts'
import { route, type Routable, type Route } from '../../../src/routing/route.ts'

const on: Routable = { id: 'on', state: 'on' }
const off: Routable = { id: 'off', state: 'off' }
const paused: Routable = { id: 'paused', state: 'paused' }

/** Returns the reason for each skipped destination, as `id: reason`. */
const reasons = ({ skipped }: Route<Routable>): string[] =>
  skipped.map(({ destination, reason }) => `${destination.id}: ${reason}`)

describe('by state', () => {
  test.each(messageKinds)('a message of kind %s goes to destinations that are on or paused', (type) => {
    expect(route({ type }, [on, off, paused])).toEqual({
      to: [on, paused],
      unjudged: [],
      skipped: [{ destination: off, reason: 'destination_off' }],
      failed: [],
    })
  })

  test('a source without destinations routes to nobody', () => {
    expect(route({ type: 'track' }, [])).toEqual({ to: [], unjudged: [], skipped: [], failed: [] })
  })
})

describe('by integrations', () => {
  test.each<[unknown, boolean]>([
    [undefined, true],
    [null, true],
    [{}, true],
    [{ All: true }, true],
    [{ All: false }, false],
    [{ all: false }, false],
    [{ ALL: false }, true],
    [{ All: true, all: false }, true],
    [{ All: false, all: true }, false],
    [{ All: null, all: false }, false],
    [{ All: null }, true],
    [{ Webhooks: false }, false],
    [{ Webhooks: true }, true],
    [{ Webhooks: {} }, true],
    [{ Webhooks: null }, true],
    [{ webhooks: false }, true],
    [{ WEBHOOKS: false }, true],
    [{ All: true, Webhooks: false }, false],
    [{ All: false, Webhooks: true }, true],
    [{ all: false, Webhooks: true }, true],
    [{ All: false, Webhooks: { option: 1 } }, true],
    [{ All: false, Webhooks: false }, false],
    [{ All: false, Webhooks: null }, false],
    [{ All: false, webhooks: true }, false],
    [{ All: false, Mixpanel: true }, false],
    [{ Mixpanel: false }, true],
    [JSON.parse('{"__proto__":{"Webhooks":false,"All":false}}'), true],
  ])('%j lets webhooks have it: %s', (integrations, expected) => {
    const message = JSON.parse('{"type":"track"}')
    const routed = route({ ...message, integrations }, [on, paused])
    expect(routed.to).toEqual(expected ? [on, paused] : [])
    const filtered = ['on: filtered_by_integrations', 'paused: filtered_by_integrations']
    expect(reasons(routed)).toEqual(expected ? [] : filtered)
  })

  test('a destination that is off is counted as off, not as filtered', () => {
    const routed = route({ type: 'track', integrations: { All: false } }, [on, off])
    expect(routed.to).toEqual([])
    expect(reasons(routed)).toEqual(['on: filtered_by_integrations', 'off: destination_off'])
  })

  test('a delete ignores them', () => {
    expect(route({ type: 'delete', integrations: { All: false, Webhooks: false } }, [on])).toEqual({
      to: [on],
      unjudged: [],
      skipped: [],
      failed: [],
    })
  })
})

const bodyOf = (message: object): Buffer => Buffer.from(JSON.stringify(message))
const filtered = (id: string, filter: Partial<NonNullable<Routable['filter']>>): Routable => ({
  id,
  state: 'on',
  filter: { types: undefined, events: undefined, ...filter },
})

describe('by the filter of a destination', () => {
  const tracks = filtered('tracks', { types: ['track'] })
  const people = filtered('people', { types: ['identify', 'group'] })
  const orders = filtered('orders', { events: ['Order Completed', 'Order Refunded'] })
  const onlyOrders = filtered('only orders', { types: ['track'], events: ['Order Completed'] })
  const all = [on, tracks, people, orders, onlyOrders]

  test.each<[MessageKind, string | undefined, string[]]>([
    ['track', 'Order Completed', ['on', 'tracks', 'orders', 'only orders']],
    ['track', 'Order Refunded', ['on', 'tracks', 'orders']],
    ['track', 'order completed', ['on', 'tracks']],
    ['track', 'Order Completed ', ['on', 'tracks']],
    ['identify', undefined, ['on', 'people', 'orders']],
    ['page', 'Order Completed', ['on', 'orders']],
    ['delete', undefined, ['on', 'tracks', 'people', 'orders', 'only orders']],
  ])('a %s %j goes to those that want it', (type, event, expected) => {
    const routed = route(
      { type, body: bodyOf({ type, event, properties: { event: 'Order Completed' } }) },
      all,
    )
    expect(routed.to.map(({ id }) => id)).toEqual(expected)
    const others = all.filter(({ id }) => !expected.includes(id))
    expect(reasons(routed)).toEqual(others.map(({ id }) => `${id}: filtered_by_destination`))
  })

  test('the name of the event is compared as it was meant, however the JSON spells it', () => {
    const body = Buffer.from(String.raw`{"type":"track","event":"Order \u0043ompleted"}`)
    expect(route({ type: 'track', body }, [onlyOrders]).to).toEqual([onlyOrders])
  })

  test('the body is read only for names of events', () => {
    const body = Buffer.from('not JSON')
    expect(route({ type: 'track', body }, [tracks, people]).to).toEqual([tracks])
    expect(route({ type: 'page', body }, [orders, onlyOrders]).to).toEqual([orders])
  })

  test.each([
    ['2026-07-29T09:30:00.000Z', '2026-07-30T09:30:00.000Z', true],
    ['2026-07-29T09:30:00.000Z', '2026-07-30T09:30:00.001Z', false],
    ['2020-01-01', '2026-07-30T09:30:00.000Z', false],
    // A clock that is fast.
    ['2026-08-30T09:30:00.000Z', '2026-07-30T09:30:00.000Z', true],
    ['no time', '2026-07-30T09:30:00.000Z', true],
  ])('a message of %s that came at %s goes to one without history: %s', (timestamp, receivedAt, goes) => {
    const present = filtered('present', { historical: false })
    const presentOrders = filtered('present orders', { historical: false, events: ['Order Completed'] })
    const body = bodyOf({ type: 'track', event: 'Order Completed', timestamp, receivedAt })
    const routed = route({ type: 'track', body }, [on, present, presentOrders])
    expect(routed.to.map(({ id }) => id)).toEqual(['on', ...(goes ? ['present', 'present orders'] : [])])
    expect(route({ type: 'delete', body }, [present]).to).toEqual([present])
  })

  test('what Sluice makes itself passes every filter', () => {
    expect(route({ type: 'identify' }, all)).toEqual({ to: all, unjudged: [], skipped: [], failed: [] })
  })

  test('a name may have * for any characters', () => {
    const carts = filtered('carts', { events: ['Cart *', 'Order Completed'] })
    const to = (event: string) =>
      route({ type: 'track', body: bodyOf({ type: 'track', event }) }, [carts]).to.length
    expect(['Cart Viewed', 'Order Completed', 'Cart', 'Order Refunded', 'A Cart Viewed'].map(to)).toEqual([
      1, 1, 0, 0, 0,
    ])
  })

  test('a condition decides, and says if it lacks a field or can not decide', () => {
    const rich = filtered('rich', { condition: 'properties.total > 100' })
    const odd = filtered('odd', { condition: 'int(event) == 1' })
    const routed = (properties: object) =>
      route({ type: 'track', body: bodyOf({ type: 'track', event: 'E', properties }) }, [on, rich, odd])
    expect(routed({ total: 101 })).toEqual({
      to: [on, rich],
      unjudged: [],
      skipped: [],
      failed: [{ destination: odd, of: 'filter', detail: expect.stringContaining('int conversion') }],
    })
    expect(reasons(routed({ total: 1 }))).toEqual(['rich: filtered_by_destination'])
    expect(reasons(routed({}))).toEqual(['rich: filtered_by_missing_field'])
    expect(reasons(routed({ total: '101' }))).toEqual(['rich: filtered_by_missing_field'])
    expect(route({ type: 'delete', body: bodyOf({ type: 'delete' }) }, [rich, odd]).to).toEqual([rich, odd])
    expect(route({ type: 'identify' }, [rich, odd]).to).toEqual([rich, odd])
  })

  test('a sample has the same users everywhere, and keeps them if it grows', () => {
    const samples = [10, 20, 100].map((percent) => filtered(`${percent} %`, { sample: { percent } }))
    const users = Array.from({ length: 2_000 }, (_, at) => `user-${at}`)
    const counts = [0, 0, 0]
    for (const userId of users) {
      const routed = route({ type: 'page', body: bodyOf({ type: 'page', userId }) }, samples)
      const to = routed.to.map((destination) => samples.indexOf(destination))
      for (const at of to) counts[at] = (counts[at] ?? 0) + 1
      // Who is in a sample is in each larger one.
      expect(to).toEqual([0, 1, 2].slice(3 - to.length))
      expect(new Set(routed.skipped.map(({ reason }) => reason)).size).toBeLessThanOrEqual(1)
      const again = route({ type: 'track', body: bodyOf({ type: 'track', anonymousId: userId }) }, samples)
      expect(again.to).toEqual(routed.to)
    }
    expect(counts[2]).toBe(2_000)
    expect(counts[0]).toBeGreaterThan(140)
    expect(counts[0]).toBeLessThan(260)
    expect(counts[1]).toBeGreaterThan(320)
    expect(counts[1]).toBeLessThan(480)
  })

  test('one that is off is counted as off, and integrations come before filters', () => {
    const closed: Routable = { ...tracks, state: 'off' }
    const body = bodyOf({ type: 'page' })
    expect(reasons(route({ type: 'page', body }, [closed, people]))).toEqual([
      'tracks: destination_off',
      'people: filtered_by_destination',
    ])
    expect(reasons(route({ type: 'page', body, integrations: { All: false } }, [closed, people]))).toEqual([
      'tracks: destination_off',
      'people: filtered_by_integrations',
    ])
  })
})

test('each destination is either routed, in its order, or counted once', () => {
  const destinations = fc.array(
    fc.record({
      id: fc.string(),
      state: fc.constantFrom<Routable['state']>('on', 'off', 'paused'),
      filter: fc.option(
        fc.record({
          types: fc.option(fc.subarray<MessageKind>([...messageKinds]), { nil: undefined }),
          events: fc.option(fc.subarray(['a', 'b']), { nil: undefined }),
        }),
        { nil: undefined },
      ),
    }),
  )
  const type = fc.constantFrom<MessageKind>(...messageKinds)
  const integrations = fc.option(fc.dictionary(fc.constantFrom('All', 'all', 'Webhooks'), fc.jsonValue()))
  const named = Buffer.from('{"event":"a"}')
  fc.assert(
    fc.property(destinations, type, integrations, (given, kind, choice) => {
      const { to, skipped } = route({ type: kind, integrations: choice, body: named }, given)
      if (kind === 'delete') expect(to).toEqual(given.filter(({ state }) => state !== 'off'))
      const left = skipped.map(({ destination }) => destination)
      expect(given.filter((destination) => left.includes(destination))).toEqual(left)
      expect(to.length + left.length).toBe(given.length)
      expect(given.filter((destination) => to.includes(destination))).toEqual(to)
      expect(to.every(({ state }) => state !== 'off')).toBe(true)
    }),
    { numRuns: 1000 },
  )
})
