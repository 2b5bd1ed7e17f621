import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeCommitMetadata, encodeCommitMetadata } from '../../../src/kafka/wire/commit-metadata.ts'
import { Watermark } from '../../../src/kafka/partitions/watermark.ts'
import { Repeats } from '../../../src/repeats/repeats.ts'

/**
 * Tests of a partition in which messages are repeated. Workers take the partition over from each other,
 * crash, come back, and commit late. Whatever they do, each message is delivered at least once.
 */

const runs = { numRuns: 3_000 }
const remembered = 1_000

type Commit = { offset: number; metadata: string | null }

/**
 * The partition, the commit of the group, the messages that a receiver has got, and the number of dropped
 * ones.
 */
type World = { log: readonly string[]; commit: Commit; delivered: Set<string>; dropped: number }

/** One time for which a worker owns the partition. */
class Tenure {
  readonly #world: World
  readonly #repeats: Repeats
  readonly #watermark: Watermark
  readonly #held: number[] = []
  #next: number

  constructor(world: World, repeats: Repeats) {
    const { offset, metadata } = world.commit
    this.#world = world
    this.#repeats = repeats
    this.#watermark = new Watermark(offset, decodeCommitMetadata(offset, metadata)?.settledAbove)
    this.#next = offset
  }

  take(count: number): void {
    const { log } = this.#world
    for (const end = Math.min(log.length, this.#next + count); this.#next < end; this.#next++) {
      const offset = this.#next
      if (this.#watermark.receive(offset) !== 'new') continue
      const record = { partition: 0, offset, timestampMs: 1_000 * offset }
      if (this.#repeats.isRepeat(record, 'shop', log[offset] ?? '')) {
        this.#world.dropped++
        this.#watermark.settle(offset)
      } else {
        this.#held.push(offset)
      }
    }
  }

  /**
   * Sets the client back to an offset. The broker then delivers records again that this worker has already
   * got.
   */
  seek(offset: number): void {
    this.#next = Math.min(this.#next, offset)
  }

  deliver(which: number): void {
    const [offset] = this.#held.splice(which % Math.max(1, this.#held.length), 1)
    if (offset === undefined) return
    this.#world.delivered.add(this.#world.log[offset] ?? '')
    this.#watermark.settle(offset)
  }

  deliverAll(): void {
    while (this.#held.length > 0) this.deliver(0)
  }

  commit(): void {
    const { position } = this.#watermark
    const metadata = encodeCommitMetadata(position, this.#watermark.settledAbove(1_000), {
      isFinal: false,
      epoch: 1,
    })
    this.#world.commit = { offset: position, metadata }
  }
}

type Counted = 'take' | 'deliver' | 'seek' | 'reset' | 'late delivery'
type Plain = 'commit' | 'crash' | 'move' | 'move and forget' | 'late commit' | 'begin again'
type Step = { do: Counted; number: number } | { do: Plain }

const plain = (...kinds: Plain[]) => fc.constantFrom(...kinds).map((kind): Step => ({ do: kind }))
const counted = (...kinds: Counted[]) => fc.record({ do: fc.constantFrom(...kinds), number: fc.nat(12) })

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: counted('take', 'deliver') },
  { weight: 4, arbitrary: plain('commit') },
  { weight: 2, arbitrary: plain('crash', 'move', 'move and forget', 'begin again') },
  { weight: 2, arbitrary: counted('seek', 'late delivery') },
  { weight: 1, arbitrary: plain('late commit') },
  { weight: 1, arbitrary: counted('reset') },
)

/**
 * Runs the steps with two workers. `late` is the former owner, which may still deliver and commit what it had
 * in flight.
 */
function play(world: World, steps: readonly Step[]): void {
  const memories = [0, 1].map(() => new Repeats({ windowMs: 3_600_000, messages: remembered }))
  let worker = 0
  const memory = (): Repeats => memories[worker] ?? new Repeats({ windowMs: 1, messages: 1 })
  const begin = (): Tenure => new Tenure(world, memory())
  let owner = begin()
  let late = owner
  const goOn = (): void => {
    late = owner
    owner = begin()
  }
  for (const one of steps) {
    switch (one.do) {
      case 'take':
        owner.take(one.number)
        break
      case 'deliver':
        owner.deliver(one.number)
        break
      case 'seek':
        owner.seek(one.number)
        break
      case 'commit':
        owner.commit()
        break
      case 'crash':
        memories[worker] = new Repeats({ windowMs: 3_600_000, messages: remembered })
        owner = begin()
        late = owner
        break
      case 'move':
        worker = 1 - worker
        goOn()
        break
      case 'move and forget':
        memory().keepOnly([])
        worker = 1 - worker
        goOn()
        break
      case 'begin again':
        goOn()
        break
      case 'late delivery':
        late.deliver(one.number)
        break
      case 'late commit':
        late.commit()
        break
      case 'reset':
        world.commit = { offset: Math.min(world.commit.offset, one.number), metadata: null }
        goOn()
    }
  }
  owner.take(world.log.length)
  owner.deliverAll()
}

test('whatever becomes of its owners, each message of a partition is delivered', () => {
  let dropped = 0
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 14 }),
      fc.array(step, { maxLength: 40 }),
      (log, steps) => {
        const world: World = { log, commit: { offset: 0, metadata: null }, delivered: new Set(), dropped: 0 }
        play(world, steps)
        expect(world.delivered).toEqual(new Set(log))
        dropped += world.dropped
      },
    ),
    runs,
  )
  // A filter that lets everything through would prove nothing.
  expect(dropped).toBeGreaterThan(runs.numRuns)
})

test('one owner, whom nothing happens to, delivers each once', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 14 }), (log) => {
      const world: World = { log, commit: { offset: 0, metadata: null }, delivered: new Set(), dropped: 0 }
      play(world, [])
      expect(log.length - world.dropped).toBe(new Set(log).size)
    }),
    runs,
  )
})
