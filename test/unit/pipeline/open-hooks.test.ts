import { describe, expect, test } from 'vitest'
import { type Destination, destinationOf, failed, stage, taken, TestRecord, throttled } from './stage.ts'

/** What a worker tells every few seconds of its hooks: those that fail, and those that get less. */

const breaker = { failureShare: 0.5, minResults: 2, windowMs: 10_000, openMs: 1_000, maxOpenMs: 1_000 }

/** A catalog may have 100,000 destinations: who goes through all of them fails. */
class Unwalked<V> extends Map<string, V> {
  override values(): never {
    throw new Error('the whole catalog was gone through')
  }
  override keys(): never {
    return this.values()
  }
  override entries(): never {
    return this.values()
  }
  override forEach(): never {
    return this.values()
  }
  override [Symbol.iterator](): never {
    return this.values()
  }
}

const ids = ['crm', 'shop', 'mail']

function staged() {
  const destinations = new Unwalked<Destination>()
  for (const id of ids) destinations.set(id, destinationOf(id, { sources: [`of-${id}`] }))
  const all = stage({
    breaker,
    catalog: () => ({
      sources: new Map(ids.map((id) => [`of-${id}`, { enabled: true }])),
      destinations,
      destinationsBySource: new Map(
        ids.map((id) => {
          const one = destinations.get(id)
          return [`of-${id}`, one === undefined ? [] : [one]]
        }),
      ),
    }),
  })
  let offset = 0
  const send = async (to: string, ...outcomes: readonly (typeof taken)[]): Promise<void> => {
    for (const outcome of outcomes) {
      const content = { type: 'track', event: 'e', userId: 'u', messageId: `m-${offset}` }
      const value = Buffer.from(JSON.stringify(content))
      all.pipeline.accept(new TestRecord('events', offset++), {
        key: null,
        value,
        headers: { 'source-id': `of-${to}` },
      })
      await all.settle()
      all.posted.find((posted) => posted.to === to)?.answer(outcome)
      await all.settle()
    }
  }
  const open = () => all.pipeline.openHooks().map(({ destinationId, hookId }) => `${destinationId}/${hookId}`)
  const lowered = () => all.pipeline.lowered()
  return { ...all, destinations, send, open, lowered }
}

describe('hooks that fail', () => {
  test('are found without a walk through the catalog, and again and again', async () => {
    const { send, open } = staged()
    expect(open()).toEqual([])
    await send('crm', failed, failed)
    await send('mail', taken, taken)
    for (let look = 0; look < 3; look++) expect(open()).toEqual(['crm/hook'])
    await send('shop', failed, failed)
    expect(open().toSorted()).toEqual(['crm/hook', 'shop/hook'])
  })

  test('are no more told once they work, and told again when they fail again', async () => {
    const { pipeline, send, open } = staged()
    await send('crm', failed, failed)
    expect(open()).toEqual(['crm/hook'])
    pipeline.askAgain('crm')
    expect(open()).toEqual([])
    await send('crm', failed, failed)
    expect(open()).toEqual(['crm/hook'])
  })

  test('are those of the definitions in force', async () => {
    const { destinations, send, open } = staged()
    await send('crm', failed, failed)
    await send('shop', failed, failed)
    destinations.delete('crm')
    destinations.set('shop', destinationOf('shop', { sources: ['of-shop'], maxInFlight: 2 }))
    expect(open()).toEqual([])
    await send('shop', failed, failed)
    expect(open()).toEqual(['shop/hook'])
  })
})

test('hooks that have learned to get less are found without a walk, while their definition is in force', async () => {
  const { destinations, send, lowered } = staged()
  expect(lowered()).toEqual([])
  await send('mail', taken, taken, throttled)
  await send('crm', taken)
  for (let look = 0; look < 3; look++) expect(lowered()).toEqual(['mail'])
  destinations.set('mail', destinationOf('mail', { sources: ['of-mail'], maxInFlight: 2 }))
  expect(lowered()).toEqual([])
})
