import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { messageKinds, type MessageKind } from '../../../src/message/message-schemas.ts'
import { route, type Routable } from '../../../src/routing/route.ts'

const on: Routable = { id: 'on', state: 'on' }
const off: Routable = { id: 'off', state: 'off' }
const paused: Routable = { id: 'paused', state: 'paused' }
const nothingSkipped = { destination_off: 0, filtered_by_integrations: 0 }

describe('by state', () => {
  test.each(messageKinds)('a message of kind %s goes to destinations that are on or paused', (type) => {
    expect(route({ type }, [on, off, paused])).toEqual({
      to: [on, paused],
      skipped: { destination_off: 1, filtered_by_integrations: 0 },
    })
  })

  test('a source without destinations routes to nobody', () => {
    expect(route({ type: 'track' }, [])).toEqual({ to: [], skipped: nothingSkipped })
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
    const { to, skipped } = route({ ...message, integrations }, [on, paused])
    expect(to).toEqual(expected ? [on, paused] : [])
    expect(skipped.filtered_by_integrations).toBe(expected ? 0 : 2)
  })

  test('a destination that is off is counted as off, not as filtered', () => {
    expect(route({ type: 'track', integrations: { All: false } }, [on, off])).toEqual({
      to: [],
      skipped: { destination_off: 1, filtered_by_integrations: 1 },
    })
  })

  test('a delete ignores them', () => {
    expect(route({ type: 'delete', integrations: { All: false, Webhooks: false } }, [on])).toEqual({
      to: [on],
      skipped: nothingSkipped,
    })
  })
})

test('each destination is either routed, in its order, or counted once', () => {
  const destinations = fc.array(
    fc.record({ id: fc.string(), state: fc.constantFrom<Routable['state']>('on', 'off', 'paused') }),
  )
  const type = fc.constantFrom<MessageKind>(...messageKinds)
  const integrations = fc.option(fc.dictionary(fc.constantFrom('All', 'all', 'Webhooks'), fc.jsonValue()))
  fc.assert(
    fc.property(destinations, type, integrations, (given, kind, choice) => {
      const { to, skipped } = route({ type: kind, integrations: choice }, given)
      expect(to.length + skipped.destination_off + skipped.filtered_by_integrations).toBe(given.length)
      expect(given.filter((destination) => to.includes(destination))).toEqual(to)
      expect(to.every(({ state }) => state !== 'off')).toBe(true)
    }),
    { numRuns: 1000 },
  )
})
