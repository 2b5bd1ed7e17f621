import { expect, test } from 'vitest'
import type { Evidence } from '../../../drill/evidence.ts'
import { findManyRepeats, findOvertaken } from '../../../drill/queues.ts'
import { keyOf } from '../../support/delivery-book.ts'
import { flawless, secondMs, startMs } from './evidence.ts'

/** The user of each of these messages is the same, so they are in one unit. */
const ids = Array.from({ length: 10 }, (_, index) => `sale-${index * 500}`)

/** Returns the evidence of a burst whose messages arrive at these seconds. */
function burst(atS: readonly number[], more: Partial<Evidence> = {}): Evidence {
  const deliveries = ids.map((messageId, index) => {
    const arrivedMs = startMs + (atS[index] ?? 0) * secondMs
    return [
      keyOf('loyalty', messageId),
      [{ destination: 'loyalty', messageId, worker: 'w1', arrivedMs, isAnswered: true }],
    ] as const
  })
  return {
    ...flawless(),
    acknowledged: ids.map((id) => ({ id, source: 'sale', sentMs: startMs })),
    deliveries: new Map(deliveries),
    ...more,
  }
}

const inOrder = ids.map((_, index) => index)
const firstComesLast = [20, ...inOrder.slice(1)]

test('a burst that comes in its order is in order, whatever was in flight', () => {
  expect(findOvertaken(burst(inOrder))).toEqual({ overtaken: [], checked: 10 })
  expect(findOvertaken(burst([3.5, ...inOrder.slice(1)]))).toEqual({ overtaken: [], checked: 10 })
})

test('a message that comes after many later ones of its unit is told', () => {
  expect(findOvertaken(burst(firstComesLast))).toEqual({
    overtaken: [{ key: 'loyalty/sale-0', by: 9 }],
    checked: 10,
  })
})

test('no order is promised while a worker comes or goes', () => {
  const leave = {
    kind: 'leave',
    worker: 'w1',
    fromMs: startMs + secondMs,
    toMs: startMs + 2 * secondMs,
  } as const
  expect(findOvertaken(burst(firstComesLast, { changes: [leave] }))).toEqual({ overtaken: [], checked: 0 })
})

test('a kill may repeat what a destination takes in a second, and no more', () => {
  const kill = { kind: 'kill', worker: 'w1', fromMs: startMs, toMs: startMs + secondMs } as const
  const [delivery] = [...burst(inOrder).deliveries.values()].flat()
  if (delivery === undefined) throw new Error('there is no delivery')
  const repeats = (count: number) =>
    Array.from({ length: count }, () => ({
      cause: 'worker killed or stopped' as const,
      deliveries: [delivery, delivery],
      fault: kill,
    }))
  expect(findManyRepeats(burst(inOrder), repeats(20))).toEqual([])
  expect(findManyRepeats(burst(inOrder), repeats(21))).toEqual(['loyalty: 21 after the kill of w1'])
})
