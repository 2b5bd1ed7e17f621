import { expect, test } from 'vitest'
import { RecordQueue } from '../../../bench/sick/record-queue.ts'

test('records come out in their order, whole, over many pieces', () => {
  const queue = new RecordQueue()
  const read: string[] = []
  const written: string[] = []
  for (let at = 0; at < 5_000; at++) {
    const value = Buffer.alloc((at * 37) % 900, 97)
    queue.push({ key: Buffer.from(`k${at}`), value, headers: { name: `é${at}` } }, at)
    written.push(`${at} k${at} ${value.length} é${at}`)
    // The queue gets longer and shorter in turn, and is empty at times.
    if (at % 3 > 0 || at % 1_000 === 0) read.push(next())
    if (at % 700 === 0) for (let left = queue.length; left > 0; left--) read.push(next())
  }
  while (queue.length > 0) read.push(next())
  expect(read).toEqual(written)
  expect(queue.headMs).toBeUndefined()

  function next(): string {
    const { headMs } = queue
    const { key, value, headers } = queue.shift()
    return `${headMs} ${String(key)} ${value?.length} ${String(headers?.['name'])}`
  }
})
