import { expect, onTestFinished, test, vi } from 'vitest'
import type { Connections } from '../../../src/backfill/connected-spaces.ts'
import { FirstSyncs } from '../../../src/backfill/first-syncs.ts'
import { MarkKeeper } from '../../../src/backfill/mark-keeper.ts'
import { until } from '../../support/until.ts'

function catalogOf(isConnected: boolean): Connections {
  const sources = isConnected ? ['space'] : []
  return {
    sources: new Map([['space', { kind: 'audiences', enabled: true }]]),
    destinations: new Map([['late', { state: 'on', sources }]]),
  }
}

/** Returns the keeper of a log of marks in memory. */
function keeperOf(): MarkKeeper {
  const log: { offset: number; key: Buffer; value: Buffer }[] = []
  return new MarkKeeper({
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
}

test('a destination that is left out again, after it was disconnected, is reported again', async () => {
  const keeper = keeperOf()
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
    backlogOf: () => 0,
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

const nothing = () => undefined

test('a first sync holds back while too much of it waits in the queue of its destination', async () => {
  const keeper = keeperOf()
  let [isConnected, backlog, asked, sent] = [false, 1_000, 0, 0]
  const firstSyncs = new FirstSyncs({
    isWanted: true,
    perSecond: 100,
    partitions: 1,
    catalog: () => catalogOf(isConnected),
    marks: keeper,
    readMarks: () => keeper.update(),
    statesOf: () => Promise.resolve({ states: [], last: null }),
    send: () => Promise.resolve(),
    backlogOf(destinationId) {
      expect(destinationId).toBe('late')
      asked++
      return backlog
    },
    observer: {
      begun: nothing,
      sent: nothing,
      ended: () => void sent++,
      stopped: nothing,
      failed: nothing,
      leftOut: nothing,
    },
  })
  onTestFinished(() => firstSyncs.stop())
  await firstSyncs.acquire(0)
  isConnected = true
  firstSyncs.catalogChanged()
  await until('it has looked twice', () => asked >= 2)
  expect(sent).toBe(0)
  backlog = 500
  await until('it goes on', () => sent === 1)
})
