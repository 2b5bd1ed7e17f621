import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  type Batch,
  type BatchEnd,
  PartitionDispatch,
  type PartitionDispatchOptions,
} from '../../../src/async/partition-dispatch.ts'

type Item = { readonly name: string; readonly bytes: number }
type Sent = {
  readonly batches: readonly Batch<Item>[]
  readonly route: string
  readonly onEnd: (batch: Batch<Item>, end: BatchEnd<Item>) => void
}

const lingerMs = 20
const slowMs = 250
let sent: Sent[]
let dispatch: PartitionDispatch<Item>

function begin(options: Partial<PartitionDispatchOptions<Item>> = {}): void {
  sent = []
  dispatch = new PartitionDispatch<Item>({
    recordsOf: () => 1,
    batchBytes: 1_000,
    minBackoffMs: 100,
    maxBackoffMs: 400,
    most: { records: 10, bytes: 1_000 },
    lingerMs,
    lingersBetween: true,
    send: (batches, route, onEnd) => sent.push({ batches, route, onEnd }),
    ...options,
  })
}

beforeEach(() => {
  vi.useFakeTimers()
  begin()
})

afterEach(() => {
  dispatch.stop()
  vi.useRealTimers()
})

function push(partition: number, ...names: readonly string[]): void {
  for (const name of names) dispatch.push('topic', partition, { name, bytes: 10 })
}

/** Returns one text for each send, with its route and its batches. */
function sends(): string[] {
  return sent.map(({ batches, route }) => {
    const texts = batches.map(
      ({ partition, items }) => `${partition}:${items.map(({ name }) => name).join('')}`,
    )
    return `${route} ${texts.join(' ')}`
  })
}

/** Ends the batch that a send had for a partition. */
function end(index: number, partition: number, kind: BatchEnd<Item>['kind'] = 'taken'): void {
  const one = sent[index]
  const batch = one?.batches.find((each) => each.partition === partition)
  if (one === undefined || batch === undefined) throw new Error('nothing was sent')
  one.onEnd(batch, kind === 'taken' ? { kind } : { kind, again: batch.items })
}

const pass = (ms: number): unknown => vi.advanceTimersByTime(ms)

describe('while all partitions take what they are sent', () => {
  test('what comes within the linger time goes together, and one send is under way at a time', () => {
    push(0, 'a', 'b')
    push(1, 'c')
    pass(lingerMs - 1)
    expect(sends()).toEqual([])
    pass(1)
    expect(sends()).toEqual(['main 0:ab 1:c'])
    push(0, 'd')
    push(2, 'e')
    pass(slowMs - lingerMs - 1)
    expect(sent).toHaveLength(1)
    end(0, 0)
    end(0, 1)
    pass(lingerMs)
    expect(sends()).toEqual(['main 0:ab 1:c', 'main 2:e 0:d'])
  })

  test('what had no room goes at once', () => {
    push(0, ...Array.from('abcdefghijklm'))
    pass(lingerMs)
    end(0, 0)
    expect(sends()).toEqual(['main 0:abcdefghij', 'main 0:klm'])
  })
})

describe('a partition that takes nothing', () => {
  test('is sent what waits for it by itself, in its order, with rests that grow up to a limit', () => {
    push(0, 'a', 'b')
    push(1, 'c')
    pass(lingerMs)
    end(0, 1)
    end(0, 0, 'failed')
    push(0, 'd')
    const restsMs: number[] = []
    for (let index = 1; index < 6; index++) {
      let waitedMs = 0
      for (; sent.length === index; waitedMs++) pass(1)
      restsMs.push(waitedMs)
      end(index, 0, 'failed')
    }
    expect(restsMs).toEqual([100, 200, 400, 400, 400])
    expect(new Set(sends().slice(1))).toEqual(new Set(['isolated 0:abd']))
    pass(400)
    end(6, 0)
    push(0, 'e')
    pass(lingerMs)
    expect(sends().at(-1)).toBe('main 0:e')
  })

  test('holds up no other: neither while it fails nor while it gives no answer', () => {
    push(0, 'a')
    push(1, 'b')
    pass(lingerMs)
    end(0, 1)
    push(0, 'c')
    push(1, 'd')
    pass(slowMs + lingerMs)
    expect(sends()).toEqual(['main 0:a 1:b', 'main 1:d'])
    end(1, 1)
    push(1, 'e')
    pass(lingerMs)
    expect(sends().at(-1)).toBe('main 1:e')
    // Only now is the outcome of the first send known.
    end(0, 0, 'failed')
    end(2, 1)
    push(1, 'f')
    pass(100)
    expect(sends().slice(3)).toEqual(['main 1:f', 'isolated 0:ac'])
    push(1, 'g')
    end(3, 1)
    pass(lingerMs)
    expect(sends().at(-1)).toBe('main 1:g')
  })

  test('keeps to one send at a time, whatever the route', () => {
    push(0, 'a')
    pass(lingerMs)
    end(0, 0, 'failed')
    pass(100)
    push(0, 'b')
    pass(10_000)
    expect(sends()).toEqual(['main 0:a', 'isolated 0:a'])
    end(1, 0)
    pass(lingerMs)
    expect(sends().at(-1)).toBe('main 0:b')
  })
})

test('what was refused together goes one by one, without a rest, and then what came behind it', () => {
  push(0, 'a', 'b', 'c')
  pass(lingerMs)
  push(0, 'd', 'e')
  push(1, 'x')
  end(0, 0, 'split')
  pass(lingerMs)
  end(1, 1)
  for (let index = 1; index < 4; index++) end(index, 0)
  expect(sends().slice(1)).toEqual(['main 1:x 0:a', 'main 0:b', 'main 0:c', 'main 0:de'])
})

test('a partition whose waiting items were all taken away holds up no other', () => {
  push(0, 'a')
  pass(lingerMs)
  push(1, 'b')
  dispatch.queueOf('topic', 1).takeWhile(() => true)
  push(2, 'c')
  end(0, 0)
  pass(lingerMs)
  expect(sends()).toEqual(['main 0:a', 'main 2:c'])
  end(1, 2)
  push(1, 'd')
  pass(lingerMs)
  expect(sends().at(-1)).toBe('main 1:d')
})

test('nothing is sent after a stop', () => {
  push(0, 'a')
  push(1, 'b')
  pass(lingerMs)
  end(0, 0, 'failed')
  push(2, 'c')
  dispatch.stop()
  end(0, 1)
  pass(10_000)
  expect(sent).toHaveLength(1)
})
