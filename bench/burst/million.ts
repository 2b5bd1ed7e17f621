import { setImmediate as turn } from 'node:timers/promises'
import { AtATime } from '../../src/async/at-a-time.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { heapBytes } from '../support/heap.ts'
import { say } from '../support/say.ts'
import {
  createQueueTopics,
  deleteQueueTopics,
  messageBytes,
  openQueues,
  type OwnQueues,
  type QueueTopics,
  waitingRecord,
  wireBytes,
} from './own-queues.ts'

/** The most records whose acknowledgements are awaited, as in a worker under load. */
const mostUnderWay = 5_000
/** What a worker holds ready of a destination that is alone, and of one of many (`src/pipeline/refill.ts`). */
export const readyAlone = 128
export const readyOfMany = 8
const mostReadMs = 60_000

/**
 * One destination with so many messages in one unit: what they cost to write, to keep, to take over and to
 * read.
 */
export async function measureOneLane(
  brokers: readonly string[],
  count: number,
): Promise<Record<string, number>> {
  const of = await createQueueTopics(brokers, 1)
  try {
    const first = await openQueues(brokers, of)
    await first.takeOver()
    const before = { heap: heapBytes(), wire: wireBytes() }
    await appendAll(first, count, () => 'one')
    const heap = heapBytes() - before.heap
    const written = wireBytes().written - before.wire.written
    const indexed = first.queues.indexBytes
    await first.stop()
    const unmarked = await takeOverOnce(brokers, { ...of, marksTopic: of.emptyTopic }, count)
    const second = await openQueues(brokers, of)
    const tookMs = await second.takeOver()
    check(second, count)
    const startedMs = performance.now()
    const read = await drain(second, { ids: ['one'], count, ready: readyAlone, speedOf: () => Infinity })
    const seconds = (performance.now() - startedMs) / 1_000
    await second.stop()
    say(`one destination with ${count.toLocaleString('en')}: taken over in ${Math.round(tookMs)} ms`)
    return {
      takeover_1m_s: tookMs / 1_000,
      takeover_1m_unmarked_s: unmarked / 1_000,
      bytes_written_per_waiting: written / count / messageBytes,
      bytes_read_per_waiting: read / count / messageBytes,
      bytes_per_waiting: indexed / count,
      heap_bytes_per_waiting: heap / count,
      reads_per_s: count / seconds,
    }
  } finally {
    await deleteQueueTopics(brokers, of)
  }
}

/**
 * A thousand destinations whose messages alternate in one unit. On one side they all take as many messages a
 * second; on the other, some take ten times as many as others.
 */
export async function measureLanes(
  brokers: readonly string[],
  count: number,
): Promise<Record<string, number>> {
  const ids = Array.from({ length: 1_000 }, (_, index) => `lane-${index}`)
  const figures: Record<string, number> = {}
  for (const [name, speedOf] of Object.entries({
    even: () => 1,
    uneven: (lane: number) => 1 + (lane % 10),
  })) {
    const of = await createQueueTopics(brokers, 1)
    try {
      const opened = await openQueues(brokers, of)
      await opened.takeOver()
      const before = wireBytes()
      await appendAll(opened, count, (index) => ids[scramble(index) % ids.length] ?? '')
      const written = wireBytes().written - before.written
      const bytes = opened.queues.indexBytes
      const read = await drain(opened, { ids, count, ready: readyOfMany, speedOf })
      await opened.stop()
      const suffix = name === 'even' ? '' : `_${name}`
      figures[`lanes_bytes_read${suffix}`] = read / count / messageBytes
      if (name !== 'even') continue
      figures['lanes_bytes_written'] = written / count / messageBytes
      figures['lanes_bytes_per_waiting'] = bytes / count
    } finally {
      await deleteQueueTopics(brokers, of)
    }
  }
  return figures
}

async function takeOverOnce(brokers: readonly string[], of: QueueTopics, count: number): Promise<number> {
  const opened = await openQueues(brokers, of)
  const tookMs = await opened.takeOver()
  check(opened, count)
  await opened.stop()
  return tookMs
}

function check({ queues }: OwnQueues, count: number): void {
  let waiting = 0
  for (const [, one] of queues.counts()) waiting += one
  if (waiting !== count) throw new BenchmarkFailure(`${waiting} of ${count} messages wait after a takeover`)
}

/** Lets messages wait, as a worker does that gets them faster than it delivers them. */
export async function appendAll(
  { queues }: OwnQueues,
  count: number,
  destinationOf: (index: number) => string,
): Promise<void> {
  const slots = new AtATime(mostUnderWay)
  const { signal } = new AbortController()
  for (let index = 0; index < count; index++) {
    const id = destinationOf(index)
    await slots.take(signal)
    const source = { topic: 'events', partition: 0, offset: index }
    void queues.append(source, id, 'fresh', waitingRecord(index, id)).then(() => slots.end())
  }
  for (let slot = 0; slot < mostUnderWay; slot++) await slots.take(signal)
}

type Draining = {
  readonly ids: readonly string[]
  readonly count: number
  /** The most messages of a destination that are in memory. */
  readonly ready: number
  /** How many messages a destination delivers in a round. */
  readonly speedOf: (lane: number) => number
}

/** Delivers all that waits, in rounds without a clock. Returns the bytes that were read for it. */
async function drain(opened: OwnQueues, { ids, count, ready, speedOf }: Draining): Promise<number> {
  const { queues } = opened
  const before = wireBytes().read
  const lanes = new Map(ids.map((id) => [id, { wanted: 0, held: [] as (() => void)[] }]))
  let done = 0
  opened.onTaken = (record, id) => {
    const lane = lanes.get(id)
    if (lane === undefined) throw new BenchmarkFailure(`a message of an unknown destination: ${id}`)
    lane.wanted--
    lane.held.push(() => record.settle())
  }
  for (;;) {
    for (const [index, id] of ids.entries()) {
      const lane = lanes.get(id)
      if (lane === undefined) continue
      for (const settle of lane.held.splice(0, speedOf(index))) {
        settle()
        done++
      }
      // What is kept in memory is taken during this call.
      const pulled = queues.pull(id, 'fresh', ready - lane.held.length - lane.wanted)
      lane.wanted += pulled
    }
    if (done === count) return wireBytes().read - before
    await anyHeld([...lanes.values()])
  }
}

/** Waits until a message is read. */
async function anyHeld(lanes: readonly { readonly held: readonly unknown[] }[]): Promise<void> {
  const deadlineMs = performance.now() + mostReadMs
  do {
    await turn()
    if (lanes.some(({ held }) => held.length > 0)) return
  } while (performance.now() < deadlineMs)
  throw new BenchmarkFailure('waiting messages were not read')
}

/** Returns a number that looks random, and is the same each time. */
function scramble(index: number): number {
  let bits = Math.imul(index + 1, 0x9e3779b1)
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  return (bits ^ (bits >>> 15)) >>> 0
}
