import { expect, test } from 'vitest'
import { createCatalog, type Destination } from '../../../src/catalog/catalog.ts'
import { nextCatalog, withVersions } from '../../../src/catalog/next-catalog.ts'
import { Watermark } from '../../../src/kafka/partitions/watermark.ts'
import { growthOf } from '../../support/cost.ts'

// These tests make something eight times as large that must make no difference.

/** A time may grow this many times because of caches. Work that goes with the size grows eight times. */
const most = 4

function destinationOf(id: string): Destination {
  return {
    id,
    name: id,
    state: 'on',
    sources: [],
    filter: undefined,
    sharedSecret: undefined,
    nextSharedSecret: undefined,
    standardWebhooks: false,
    strategy: 'all',
    maxInFlight: 64,
    rateLimit: undefined,
    hooks: [],
  }
}

test('a change of a catalog costs what it changes, however many destinations there are', () => {
  const growth = growthOf(
    (count) => {
      const all = Array.from({ length: count }, (_, index) => destinationOf(`d${index}`))
      let catalog = withVersions(createCatalog([], all, '0'))
      let change = 0
      return () => {
        for (let made = 0; made < 500; made++) {
          const id = `d${change++ % count}`
          const destinations = new Map([[id, destinationOf(id)]])
          catalog = nextCatalog(catalog, { sources: new Map(), destinations }, String(change))
        }
      }
    },
    64_000,
    most,
  )
  expect(growth).toBeLessThan(most)
})

test('a gap of offsets takes no time while a record before it is held', () => {
  const growth = growthOf(
    (gap) => () => {
      const watermark = new Watermark(0)
      watermark.receive(0)
      for (const offset of [gap, gap + 1, gap + 3]) watermark.receive(offset)
      watermark.settle(gap + 1)
      for (const _ of watermark.settledAbove(2 * gap));
      watermark.skipTo(2 * gap)
      watermark.settle(0)
      watermark.settle(gap)
      watermark.settle(gap + 3)
    },
    2 ** 27,
    most,
  )
  expect(growth).toBeLessThan(most)
})
