import { expect, test, vi } from 'vitest'
import type { Connections } from '../../../src/backfill/connections.ts'
import { FirstSyncs } from '../../../src/backfill/first-syncs.ts'
import { MarkKeeper } from '../../../src/backfill/mark-keeper.ts'

function catalogOf(isConnected: boolean): Connections {
  const sources = isConnected ? ['space'] : []
  return {
    sources: new Map([['space', { kind: 'audiences', enabled: true }]]),
    destinations: new Map([['late', { state: 'on', sources }]]),
  }
}

test('a destination that is left out again, after it was disconnected, is reported again', async () => {
  const log: { offset: number; key: Buffer; value: Buffer }[] = []
  const keeper = new MarkKeeper({
    partitions: 2,
    async *read(from) {
      yield await Promise.resolve(log.slice(from))
    },
    async write(record) {
      const offset = log.length
      log.push({ offset, ...record })
      return Promise.resolve({ offset })
    },
    onMark: () => undefined,
  })
  const leftOut = vi.fn<() => void>()
  const unexpected = vi.fn<() => void>()
  let isConnected = false
  const firstSyncs = new FirstSyncs({
    isWanted: false,
    perSecond: 1,
    partitions: 2,
    catalog: () => catalogOf(isConnected),
    marks: keeper,
    readMarks: () => keeper.update(),
    statesOf: () => Promise.resolve(undefined),
    send: () => Promise.resolve(),
    observer: {
      begun: unexpected,
      sent: unexpected,
      ended: unexpected,
      stopped: unexpected,
      failed: unexpected,
      leftOut,
    },
  })
  for (const unit of [0, 1]) await firstSyncs.acquire(unit)
  for (const times of [1, 2, 3]) {
    isConnected = true
    firstSyncs.catalogChanged()
    expect(leftOut).toHaveBeenCalledTimes(times)
    isConnected = false
    firstSyncs.catalogChanged()
  }
  await firstSyncs.stop()
  expect(unexpected).not.toHaveBeenCalled()
})
