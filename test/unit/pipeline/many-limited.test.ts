import { expect, test } from 'vitest'
import type { OutboundRecord, QueueClass, WaitingQueue } from '../../../src/pipeline/pipeline-ports.ts'
import { until } from '../../support/until.ts'
import { destinationOf, type Stage, stage, taken, TestRecord } from './stage.ts'

/** Tests of many destinations that each take one message a second, beside one that takes all. */

const limited = 60
const each = 40
const buffer = 40

/** The queues of destinations in Kafka: what joins one is pulled in its order. */
class Queues implements WaitingQueue {
  readonly isOpen = true
  readonly wanted = 0
  readonly #byDestination = new Map<string, Omit<OutboundRecord, 'topic' | 'partition'>[]>()
  #pulled = 0
  pipeline: Stage['pipeline'] | undefined

  get left(): number {
    return [...this.#byDestination.values()].reduce((sum, { length }) => sum + length, 0)
  }

  has({ destinationId }: { readonly destinationId: string }): boolean {
    return this.countOf(destinationId) > 0
  }

  wasQueued = (): boolean => false
  isOvertaken = (): boolean => false
  wantedOf = (): number => 0
  oldestOf = (): undefined => undefined

  async append(
    _source: unknown,
    destinationId: string,
    _class: QueueClass,
    record: Omit<OutboundRecord, 'topic' | 'partition'>,
  ): Promise<'acknowledged'> {
    const queue = this.#byDestination.get(destinationId) ?? []
    this.#byDestination.set(destinationId, queue)
    queue.push(record)
    return 'acknowledged'
  }

  waiting(): Iterable<string> {
    return [...this.#byDestination].flatMap(([id, { length }]) => (length > 0 ? [id] : []))
  }

  countOf(destinationId: string): number {
    return this.#byDestination.get(destinationId)?.length ?? 0
  }

  pull(destinationId: string, queueClass: QueueClass, most: number): number {
    const pulled = queueClass === 'fresh' ? this.#byDestination.get(destinationId)?.splice(0, most) : []
    for (const { key, value, headers } of pulled ?? [])
      this.pipeline?.acceptWaiting(
        new TestRecord('waiting', this.#pulled++),
        { key, value, headers },
        queueClass,
      )
    return pulled?.length ?? 0
  }
}

function* quiet(): Generator<string> {
  for (let index = 0; index < 500; index++) yield 'free'
}

test('they keep no message from the other one: not while they fill the buffer, and not while they have queues', async () => {
  const rateLimit = { perSecond: 1, burst: 1 }
  const names = Array.from({ length: limited }, (_, index) => `limited-${index}`)
  const queues = new Queues()
  let isFull = false
  const all = stage({
    sources: Object.fromEntries([...names, 'free'].map((name) => [name, {}])),
    destinations: [
      ...names.map((name) => destinationOf(name, { sources: [name], rateLimit })),
      destinationOf('free', { sources: ['free'] }),
    ],
    queue: queues,
    buffer: { records: buffer, bytes: Infinity },
    lanePatienceMs: 500,
    laneWaitMs: 5_000,
    onPressure: (isPressed) => (isFull = isPressed),
  })
  queues.pipeline = all.pipeline
  const sent = { limited: 0, free: 0 }
  let offset = 0
  const give = (source: string): void => {
    const body = { type: 'track', event: 'e', userId: 'u', messageId: `m${offset}` }
    const content = { key: null, value: Buffer.from(JSON.stringify(body)), headers: { 'source-id': source } }
    all.pipeline.accept(new TestRecord('events', offset++), content)
  }
  const answerAll = (): void => {
    for (const one of all.posted.slice()) {
      sent[one.to === 'free' ? 'free' : 'limited']++
      one.answer(taken)
    }
  }
  /** Fetches messages while there is room for them. */
  const fetched = async (messages: Iterator<string>): Promise<boolean> => {
    for (;;) {
      answerAll()
      if (isFull) await all.settle()
      if (isFull) return false
      const next = messages.next()
      if (next.done === true) return true
      give(next.value)
    }
  }
  function* burst(): Generator<string> {
    for (let round = 0; round < each; round++)
      for (const [index, name] of names.entries()) {
        yield name
        if (index % 10 === 0) yield 'free'
      }
  }
  const [first, second] = [burst(), quiet()]
  await until('all are fetched', () => fetched(first))
  // What the limited ones take in ten seconds. If they were waited for, it would be all that they got.
  expect(sent.limited).toBeLessThan(10 * limited)
  await until(
    'the other one has all',
    async () => (await fetched(second)) && sent.free === each * (limited / 10) + 500,
  )
  expect(queues.left).toBeGreaterThan((limited * each) / 2)
  const before = sent.limited
  await until('the limited ones go on', () => (answerAll(), sent.limited - before > 2 * limited))
  await all.pipeline.drain()
})

test('nor do they beside destinations that are slow, of which there are more than requests in flight', async () => {
  const rateLimit = { perSecond: 1, burst: 1 }
  const count = 60
  const answersAfterMs = 1_500
  const namesOf = (kind: string): string[] => Array.from({ length: count }, (_, index) => `${kind}-${index}`)
  const [slow, held] = [namesOf('slow'), namesOf('limited')]
  const queues = new Queues()
  let isFull = false
  const all = stage({
    sources: Object.fromEntries([...slow, ...held, 'free'].map((name) => [name, {}])),
    destinations: [
      ...slow.map((name) => destinationOf(name, { sources: [name] })),
      ...held.map((name) => destinationOf(name, { sources: [name], rateLimit })),
      destinationOf('free', { sources: ['free'] }),
    ],
    queue: queues,
    buffer: { records: count, bytes: Infinity },
    maxInFlight: 24,
    lanePatienceMs: 500,
    laneWaitMs: 5_000,
    onPressure: (isPressed) => (isFull = isPressed),
  })
  queues.pipeline = all.pipeline
  const askedMs = new Map<object, number>()
  let ofLimited = 0
  const answerSome = (): void => {
    for (const one of all.posted.slice()) {
      const sinceMs = askedMs.get(one) ?? performance.now()
      askedMs.set(one, sinceMs)
      if (one.to.startsWith('slow') && performance.now() - sinceMs < answersAfterMs) continue
      askedMs.delete(one)
      if (one.to.startsWith('limited')) ofLimited++
      one.answer(taken)
    }
  }
  /** In each second, each destination gets a message, and the free one gets 20. */
  const turns = 20
  const due = Array.from({ length: turns }, (_, turn) =>
    [...slow, ...held].filter((_name, index) => index % turns === turn).concat('free'),
  )
  let [offset, prompt] = [0, 0]
  const startMs = performance.now()
  let coming: string[] = []
  let turn = 0
  const goOn = async (): Promise<void> => {
    answerSome()
    for (;;) {
      if (coming.length === 0) {
        if (performance.now() - startMs < (turn * 1_000) / turns) break
        coming = [...(due[turn++ % turns] ?? [])]
      }
      if (isFull) await all.settle()
      if (isFull) break
      const source = coming.shift() ?? ''
      if (source === 'free') {
        const lateMs = performance.now() - startMs - ((turn - 1) * 1_000) / turns
        prompt = lateMs > 1_000 ? 0 : prompt + 1
      }
      const body = { type: 'track', event: 'e', userId: 'u', messageId: `m${offset}` }
      const content = {
        key: null,
        value: Buffer.from(JSON.stringify(body)),
        headers: { 'source-id': source },
      }
      all.pipeline.accept(new TestRecord('events', offset++), content)
    }
    await all.settle()
  }
  await until('three seconds of messages in a row come in time', async () => (await goOn(), prompt >= 60), {
    everyMs: 5,
  })
  const before = ofLimited
  expect(queues.left).toBeGreaterThan(count)
  await until('the limited ones go on', async () => (await goOn(), ofLimited - before > 2 * count), {
    everyMs: 5,
  })
  const drained = all.pipeline.drain()
  for (const one of all.posted.slice()) one.answer(taken)
  await drained
})

test('large messages from queues leave room to new ones', async () => {
  const rateLimit = { perSecond: 1, burst: 1 }
  let isFull = false
  const all = stage({
    destinations: [destinationOf('large', { rateLimit })],
    buffer: { records: 2_000, bytes: 10_000_000 },
    onPressure: (isPressed) => (isFull = isPressed),
  })
  const value = Buffer.alloc(500_000, 0x20)
  const headers = {
    'source-id': 'source',
    'destination-id': 'large',
    'message-type': 'track',
    rung: '0',
    attempts: '0',
    'first-seen': '1',
    'expires-at': '0',
    origin: 'events/0/1',
  }
  let pulled = 0
  while (all.pipeline.hasRoomForWaiting) {
    const content = { key: null, value, headers: { ...headers, 'message-id': `m${pulled}` } }
    all.pipeline.acceptWaiting(new TestRecord('waiting', pulled++), content, 'fresh')
  }
  expect(isFull).toBe(false)
  expect(all.pipeline.held.bytes).toBeGreaterThan(5_000_000)
  expect(all.pipeline.held.bytes).toBeLessThan(7_000_000)
  for (const one of all.posted.slice()) one.answer(taken)
  await all.pipeline.drain()
})
