import { expect, test } from 'vitest'
import { type Destination, destinationOf, failed, refused, stage } from './stage.ts'

/** Tests of deliveries that wait for a retry while the catalog removes hooks of their destination. */

const hookOf = (id: string) => ({ id, origin: `https://${id}.example`, path: '/', headers: [] })
const both = destinationOf('crm', { hooks: [hookOf('a'), hookOf('b')] })

/**
 * Starts a delivery that hook `a` refuses for good, and that fails at hook `b`. When the retry is due, the
 * catalog has `hooks`.
 */
async function retriedWith(hooks: Destination['hooks']) {
  let catalog = catalogOf(both)
  const all = stage({ catalog: () => catalog })
  all.identify('v')
  await all.settle()
  const [first, second] = [...all.posted]
  first?.answer(refused)
  second?.answer(failed)
  await all.settle()
  catalog = catalogOf({ ...both, hooks })
  all.retry(all.written.at(-1))
  await all.settle()
  return all
}

function catalogOf(destination: Destination) {
  return {
    sources: new Map([['space', { enabled: true, kind: 'audiences' as const }]]),
    destinations: new Map([[destination.id, destination]]),
    destinationsBySource: new Map([['space', [destination]]]),
  }
}

test('a delivery whose last hook is removed is a dead letter as soon as it is due', async () => {
  const { told, posted, written } = await retriedWith([hookOf('a')])
  expect(posted).toEqual([])
  expect(told).toEqual(['parked crm v: failed', 'dead crm: failed_for_good', 'behind crm space'])
  expect(written.map(({ topic }) => topic)).toEqual(['retry.1m', 'dead-letters'])
})

test('a delivery goes on with a hook that takes the place of its last one', async () => {
  const { told, posted } = await retriedWith([hookOf('a'), hookOf('c')])
  expect(posted.map(({ to }) => to)).toEqual(['c'])
  expect(told).toEqual(['parked crm v: failed'])
})
