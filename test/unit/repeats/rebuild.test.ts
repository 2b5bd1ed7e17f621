import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { Partition } from '../../../src/kafka/partitions/partition.ts'
import { believed, bindMetadata } from '../../../src/kafka/wire/commit-binding.ts'
import { memoryOf, noCommit, type StoredCommit } from '../../../src/kafka/wire/stored-commit.ts'
import { rebuild, type RebuildOptions } from '../../../src/repeats/rebuild.ts'
import { Repeats } from '../../../src/repeats/repeats.ts'

/**
 * Tests of a partition whose messages are repeated, while the catalog changes, owners crash, hand over, commit
 * late, and somebody moves the commit. Each owner rebuilds its memory of repeats from the commit and the log.
 */

const runs = { numRuns: 500 }
const home = { groupId: 'group', topic: 'events', partition: 0 }
const log = { topicId: 'A'.repeat(22), leaderEpochBefore: () => 0 }
const ids = ['a', 'b', 'c', 'd'] as const

type Record = { offset: number; timestampMs: number; leaderEpoch: number; value: Buffer }

/**
 * The log, the group's commit, and what a receiver has got. `off` are the ids that the catalog lets go
 * nowhere. A repeat that was dropped because of the rebuilt memory is counted in `dropped`.
 */
type World = {
  records: Record[]
  start: number
  stored: StoredCommit
  off: Set<string>
  delivered: Set<string>
  dropped: number
}

function append({ records }: World, id: string): void {
  const offset = records.length
  records.push({ offset, timestampMs: 1_000 * offset, leaderEpoch: 0, value: Buffer.from(id) })
}

function optionsOf(
  world: World,
  repeats: Repeats,
  limits: { messages?: number } = {},
): RebuildOptions<Record> {
  return {
    repeats,
    // What retention has deleted may be back after a new leader was elected, so it can be read here.
    read: (from, to) => Promise.resolve({ records: world.records.slice(from, to), next: to }),
    isSameTopic: () => Promise.resolve(true),
    idOf: ({ value }) => ({ sourceId: 'shop', messageId: String(value) }),
    now: () => 1_000 * world.records.length,
    isOver: () => false,
    windowMs: 3_600_000,
    messages: limits.messages ?? 1_000,
    bytes: 1_000_000,
  }
}

class Owner {
  readonly #world: World
  readonly #repeats: Repeats
  readonly partition = new Partition('events', 0, 0, { notesPassedOn: true })
  readonly #held: number[] = []
  readonly #recalled = new Set<string>()
  #next: number

  private constructor(world: World, repeats: Repeats) {
    const { start, records } = world
    const stored = believed(world.stored, home)
    const offset = Math.max(0, stored.offset)
    const isSame = offset >= start && (stored.leaderEpoch ?? -1) >= 0
    this.#world = world
    this.#repeats = repeats
    this.partition.findLog({ below: Infinity, end: records.length, stored, isSame })
    this.partition.begin({ ...stored, offset }, log)
    if (offset < start) this.partition.passOver(start)
    this.#next = this.partition.watermark.position
    this.partition.begun()
  }

  static async begin(world: World, repeats: Repeats, messages: number): Promise<Owner> {
    repeats.keepOnly([])
    const owner = new Owner(world, repeats)
    owner.commit()
    const { inherited } = owner.partition
    if (inherited === undefined) return owner
    const before = repeats.count
    await rebuild(inherited, optionsOf(world, repeats, { messages }))
    if (repeats.count > before)
      for (const { offset, value } of world.records)
        if (inherited.has(offset, 0)) owner.#recalled.add(String(value))
    return owner
  }

  take(count: number): void {
    const { records, off } = this.#world
    for (const end = Math.min(records.length, this.#next + count); this.#next < end; this.#next++) {
      const { offset, timestampMs, value } = records[this.#next] ?? { offset: 0, timestampMs: 0, value: '' }
      if (!this.partition.take(offset)) continue
      const id = String(value)
      if (off.has(id)) this.partition.settle(offset)
      else if (this.#repeats.isRepeat({ partition: 0, offset, timestampMs }, 'shop', id)) {
        if (this.#recalled.has(id)) this.#world.dropped++
        this.partition.settle(offset)
      } else {
        this.partition.passOn(offset)
        this.#held.push(offset)
      }
    }
  }

  deliver(which: number): void {
    const [offset] = this.#held.splice(which % Math.max(1, this.#held.length), 1)
    if (offset === undefined) return
    this.#world.delivered.add(String(this.#world.records[offset]?.value))
    this.partition.settle(offset)
  }

  deliverAll(): void {
    while (this.#held.length > 0) this.deliver(0)
  }

  commit(): void {
    const commit = this.partition.commitOf(this.partition.standing(false))
    const metadata = bindMetadata(commit.metadata ?? '', home, commit.offset)
    this.#world.stored = { ...commit, leaderEpoch: 0, metadata }
  }
}

type Counted = 'take' | 'deliver' | 'late delivery' | 'move commit' | 'lower commit' | 'retention'
type Plain = 'commit' | 'crash' | 'hand over' | 'late commit' | 'earlier version'
type Step = { do: 'append' | 'switch'; id: string } | { do: Counted; number: number } | { do: Plain }

const anyId = fc.constantFrom(...ids)
const oneOf = <K extends Step['do']>(...kinds: K[]) => fc.constantFrom(...kinds)
const counted = (...kinds: Counted[]) => fc.record({ do: oneOf(...kinds), number: fc.nat(12) })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ do: oneOf('append'), id: anyId }) },
  { weight: 2, arbitrary: fc.record({ do: oneOf('switch'), id: anyId }) },
  { weight: 10, arbitrary: counted('take', 'deliver') },
  { weight: 6, arbitrary: oneOf('commit', 'hand over').map((kind): Step => ({ do: kind })) },
  {
    weight: 1,
    arbitrary: oneOf('crash', 'late commit', 'earlier version').map((kind): Step => ({ do: kind })),
  },
  { weight: 1, arbitrary: counted('late delivery', 'move commit', 'lower commit', 'retention') },
)

async function play(world: World, steps: readonly Step[], messages: number): Promise<void> {
  const memory = new Repeats({ windowMs: 3_600_000, messages: 1_000 })
  const begin = (repeats = memory): Promise<Owner> => Owner.begin(world, repeats, messages)
  let owner = await begin()
  let late = owner
  for (const one of steps) {
    switch (one.do) {
      case 'append':
        append(world, one.id)
        break
      case 'switch':
        if (!world.off.delete(one.id)) world.off.add(one.id)
        break
      case 'take':
        owner.take(one.number)
        break
      case 'deliver':
        for (let n = 0; n < one.number; n++) owner.deliver(one.number + n)
        break
      case 'commit':
        owner.commit()
        break
      case 'crash':
        owner = await begin(new Repeats({ windowMs: 3_600_000, messages: 1_000 }))
        late = owner
        break
      case 'hand over':
        owner.commit()
        late = owner
        owner = await begin()
        break
      case 'late delivery':
        late.deliver(one.number)
        break
      case 'late commit':
        late.commit()
        break
      case 'earlier version': {
        // An owner of an earlier version takes all, and its commits say nothing of what went nowhere.
        owner.take(world.records.length)
        owner.deliverAll()
        owner.commit()
        const { offset } = world.stored
        const metadata = (world.stored.metadata ?? '').replace(/=~[^=]*/, '')
        world.stored = { offset, leaderEpoch: 0, metadata }
        owner = await begin()
        break
      }
      case 'move commit':
        world.stored = { ...world.stored, offset: Math.min(world.stored.offset, one.number) }
        owner = await begin()
        break
      case 'lower commit':
        world.stored = { offset: Math.min(world.stored.offset, one.number), metadata: null }
        owner = await begin()
        break
      case 'retention':
        world.start = Math.min(world.records.length, Math.max(world.start, one.number))
        owner = await begin()
    }
  }
  // In the end the catalog is corrected, and the senders send everything once more.
  world.off.clear()
  for (const id of ids) append(world, id)
  owner.take(world.records.length)
  owner.deliverAll()
}

function newWorld(): World {
  return { records: [], start: 0, stored: noCommit, off: new Set(), delivered: new Set(), dropped: 0 }
}

test('whatever goes nowhere, and whatever becomes of the owners, a message that is sent once more is delivered', async () => {
  let dropped = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 10, maxLength: 60, size: 'max' }),
      fc.constantFrom(1, 3, 1_000),
      async (steps, messages) => {
        const world = newWorld()
        await play(world, steps, messages)
        expect(world.delivered).toEqual(new Set(ids))
        dropped += world.dropped
      },
    ),
    runs,
  )
  // If the rebuilt memory dropped nothing, this test would prove nothing.
  expect(dropped).toBeGreaterThan(runs.numRuns / 2)
})

test('after a clean handover, every repeat of what was delivered is dropped', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyId, { minLength: 1, maxLength: 30 }), async (sent) => {
      const world = newWorld()
      const first = await Owner.begin(world, new Repeats({ windowMs: 3_600_000, messages: 100 }), 100)
      for (const id of sent) append(world, id)
      first.take(sent.length)
      first.deliverAll()
      first.commit()
      const next = await Owner.begin(world, new Repeats({ windowMs: 3_600_000, messages: 100 }), 100)
      for (const id of sent) append(world, id)
      next.take(sent.length)
      expect(world.dropped).toBe(sent.length)
    }),
    { numRuns: 200 },
  )
})

test('a rebuild stops at each of its bounds, and remembers the newest', async () => {
  const world = newWorld()
  const first = await Owner.begin(world, new Repeats({ windowMs: 3_600_000, messages: 100 }), 100)
  for (let n = 0; n < 1_000; n++) append(world, `m${n}`)
  first.take(1_000)
  first.deliverAll()
  first.commit()
  const partition = new Partition('events', 0, 0, { notesPassedOn: true })
  partition.findLog({ below: Infinity, end: 1_000, stored: world.stored, isSame: true })
  partition.begin(world.stored, log)
  const { inherited } = partition
  if (inherited === undefined) throw new Error('nothing is inherited')

  async function rebuilt(options: Partial<RebuildOptions<Record>>): Promise<[ended: string, known: number]> {
    const repeats = new Repeats({ windowMs: 3_600_000, messages: 2_000 })
    const { ended, remembered } = await rebuild(inherited ?? never(), {
      ...optionsOf(world, repeats),
      ...options,
    })
    const arrivals = world.records.map(({ offset, timestampMs, value }) =>
      repeats.isRepeat({ partition: 0, offset: offset + 1_000, timestampMs }, 'shop', String(value)),
    )
    // All that is remembered is newer than all that isn't.
    expect(arrivals).toEqual(arrivals.toSorted((one, other) => Number(one) - Number(other)))
    expect(arrivals.filter(Boolean)).toHaveLength(remembered)
    return [ended, remembered]
  }
  expect(await rebuilt({})).toEqual(['start', 1_000])
  expect(await rebuilt({ messages: 100 })).toEqual(['messages', 100])
  expect(await rebuilt({ windowMs: 300_000 })).toEqual(['window', 299])
  const [bytesEnd, ofBytes] = await rebuilt({ bytes: 1_000 })
  expect(bytesEnd).toBe('bytes')
  expect(ofBytes).toBeLessThan(700)
  let parts = 0
  const [timeEnd, inTime] = await rebuilt({ isOver: () => ++parts > 4 })
  expect(timeEnd).toBe('time')
  expect(inTime).toBeGreaterThan(0)
  expect(inTime).toBeLessThan(1_000)
  expect(await rebuilt({ isSameTopic: () => Promise.resolve(false) })).toEqual(['lost', 0])
  const read = (from: number, to: number) =>
    Promise.resolve({
      records: world.records.slice(from, to).map((record) => ({ ...record, leaderEpoch: 1 })),
      next: to,
    })
  expect(await rebuilt({ read })).toEqual(['start', 0])
})

test('a unit that is lost during its rebuild, and comes back, remembers nothing of the rest', async () => {
  const world = newWorld()
  for (let n = 0; n < 500; n++) append(world, `m${n}`)
  const repeats = new Repeats({ windowMs: 3_600_000, messages: 2_000 })
  const passedOn = { partition: 0, start: 0, end: 500, has: () => true }
  let reads = 0
  const { read } = optionsOf(world, repeats)
  const { ended, remembered } = await rebuild(passedOn, {
    ...optionsOf(world, repeats),
    read(from, to) {
      if (++reads === 2) {
        repeats.keepOnly([])
        repeats.tenureOf(0)
      }
      return read(from, to)
    },
  })
  expect(ended).toBe('lost')
  expect(remembered).toBe(64)
})

test('an owner of an earlier version keeps what it knows of its commit, and says nothing of what went nowhere', () => {
  const world = newWorld()
  const partition = new Partition('events', 0, 0, { notesPassedOn: true })
  partition.begin({ offset: 0, metadata: null }, log)
  for (let offset = 0; offset < 10; offset++) partition.take(offset)
  partition.settle(4)
  world.stored = { ...partition.commitOf(partition.standing(false)), leaderEpoch: 0 }
  const memory = memoryOf(world.stored)
  const without = memoryOf({
    ...world.stored,
    metadata: world.stored.metadata?.replace(/=~[^=]*/, '') ?? null,
  })
  expect(memory).toEqual({ ...without, leftOut: { since: 0, starts: [0], ends: [10] } })
})

function never(): never {
  throw new Error('this can not be')
}
