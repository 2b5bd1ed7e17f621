import { expect, test } from 'vitest'
import { PartitionQueue } from '../../../src/async/partition-queue.ts'
import { collectGarbage } from '../../support/collect-garbage.ts'

type Item = { readonly bytes: number }

function open(): PartitionQueue<Item> {
  return new PartitionQueue<Item>('topic', 0, {
    recordsOf: () => 1,
    batchBytes: 1_000,
    minBackoffMs: 100,
    maxBackoffMs: 400,
  })
}

/** Sends items one by one through a queue in which some items always wait. Returns the sent items. */
function sendThrough(queue: PartitionQueue<Item>, items: number): WeakRef<Item>[] {
  const sent: WeakRef<Item>[] = []
  for (let number = 0; number < items; number++) {
    queue.push({ bytes: 1 })
    if (number < 3) continue
    for (const item of queue.take({ records: 1, bytes: 1 }, true)) sent.push(new WeakRef(item))
    queue.worked()
  }
  return sent
}

test('a queue that is never empty keeps few of the items that were sent', async () => {
  const queue = open()
  const sent = sendThrough(queue, 900)
  await new Promise((resolve) => setImmediate(resolve))
  collectGarbage()
  const kept = sent.filter((item) => item.deref() !== undefined)
  expect(queue.isEmpty).toBe(false)
  expect(kept.length).toBeLessThanOrEqual(3)
})

test('items come out in the order in which they arrived, however many wait', () => {
  const queue = open()
  const [pushed, taken]: [Item[], Item[]] = [[], []]
  for (let round = 0; round < 3_000; round++) {
    for (let count = 0; count < (round % 7) + 1; count++) {
      const item = { bytes: 1 }
      pushed.push(item)
      queue.push(item)
    }
    taken.push(...queue.take({ records: 4, bytes: 1_000 }, true))
    queue.worked()
  }
  taken.push(...queue.takeWhile(() => true))
  expect(queue.isEmpty).toBe(true)
  expect(taken).toEqual(pushed)
})
