import * as fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { SharedBreath } from '../../../src/async/shared-breath.ts'
import type { HeldRecord } from '../../../src/message/held-record.ts'
import type { WholeRecord } from '../../../src/message/records.ts'
import { lookAt, lookMs } from '../../../src/waiting/look.ts'
import { Owners } from '../../../src/waiting/owners.ts'
import { Pieces } from '../../../src/waiting/pieces.ts'
import type { UnitQueueOptions } from '../../../src/waiting/queue-options.ts'
import { UnitQueue } from '../../../src/waiting/unit-queue.ts'
import { quietLog } from '../../support/emitted-lines.ts'

/**
 * A model of owners of a unit that follow one another, and overlap: some are killed, and some are suspended and
 * wake up later. The queues are real. The logs and the commits of the group are simulated.
 */

type ProducerRecord = Parameters<UnitQueueOptions['producer']['produceAt']>[0]

type Append = { readonly owner: Tenant; readonly land: (isAcknowledged: boolean) => void }

class Installation {
  readonly waiting: WholeRecord[] = []
  readonly marks: WholeRecord[] = []
  /** The number of records of `events`. Each is a message for one destination. */
  events = 2
  /** The records of `events` that the group has committed as settled. */
  readonly settled = new Set<number>()
  /** The messages that have left the queue. */
  readonly delivered: number[] = []
  readonly appends: Append[] = []
  readonly tenants: Tenant[] = []
  epoch = 0
  committedOffset = -1
  /** An owner without a final mark may have read the records before this one. */
  readBelow = 0

  get present(): Tenant | undefined {
    return this.tenants.findLast(({ isPresent }) => isPresent)
  }

  append(log: WholeRecord[], { key, value, headers = {} }: ProducerRecord): number {
    const offset = log.length
    const texts = Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, String(text)]))
    log.push({
      offset,
      key: bytesOf(key),
      value: bytesOf(value),
      headers: texts,
      timestampMs: Date.now(),
      leaderEpoch: 1,
    })
    return offset
  }
}

function bytesOf(text: string | Buffer | null): Buffer | null {
  return typeof text === 'string' ? Buffer.from(text) : text
}

/** A tenure of the unit. */
class Tenant {
  readonly #world: Installation
  readonly #epoch: number
  readonly #owners = new Owners()
  readonly queue: UnitQueue
  readonly #taken: { readonly message: number; readonly record: HeldRecord }[] = []
  /** The next record of `events` to read. */
  #next = 0
  #lent = 0
  isPresent = true
  isDead = false
  isLost = false
  isBegun = false

  constructor(world: Installation) {
    this.#world = world
    this.#epoch = world.epoch + 1
    this.queue = this.#open(world)
  }

  #open(world: Installation): UnitQueue {
    const [isBegun, isLost] = [(): boolean => this.isBegun, (): boolean => this.isLost]
    const epoch = world.epoch
    const reader: Partial<UnitQueueOptions['reader']> = {
      range: async () => ({ start: 0, end: world.waiting.length }),
      ranges: async () => ({ topicId: 't', ranges: new Map([[0, { start: 0, end: world.waiting.length }]]) }),
      topicId: async () => 't',
      divergesAt: async () => undefined,
      async *readWhole({ topic, from }) {
        await Promise.resolve()
        yield (topic === 'waiting' ? world.waiting : world.marks).slice(from)
      },
      piece: async ({ from }) => ({ records: world.waiting.slice(from), next: world.waiting.length }),
    }
    return new UnitQueue({
      unit: 0,
      topic: 'waiting',
      marksTopic: 'marks',
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the queue uses no other members
      reader: reader as UnitQueueOptions['reader'],
      producer: {
        produceAt: (record) =>
          new Promise((resolve) => {
            if (this.isDead) return
            const land = (isAcknowledged: boolean): void => {
              const offset = world.append(world.waiting, record)
              if (isAcknowledged) resolve({ offset })
            }
            world.appends.push({ owner: this, land })
          }),
        produce: (record) =>
          new Promise((resolve) => {
            if (this.isDead) return
            world.append(world.marks, record)
            resolve('acknowledged')
          }),
      },
      owners: this.#owners,
      pieces: new Pieces(100_000),
      handing: new SharedBreath(5),
      partition: {
        found: { offset: world.committedOffset, isForeign: false, topicId: 't', epoch, otherFrom: Infinity },
        get isBegun() {
          return isBegun() && !isLost()
        },
        get isLost() {
          return isLost()
        },
        isElsewhere: false,
        begunBelow: 0,
        get committedOffset() {
          return Math.max(0, world.committedOffset)
        },
        lend: () => void this.#lent++,
        giveBack: () => void this.#lent--,
        moveTo: (offset) => {
          if (this.isPresent && this.isBegun) world.committedOffset = Math.max(world.committedOffset, offset)
        },
        isOtherFrom() {},
        isOtherLog() {},
      },
      take: (record, { value }) => this.#taken.push({ message: Number(value), record }),
      expire() {},
      drop() {},
      maxAgeMs: () => Infinity,
      onWaiting() {},
      onLost() {},
      log: quietLog,
    })
  }

  /** Commits `waiting`. While the group is joined, the owner can't begin after its commit. */
  commit(): void {
    this.#world.epoch = this.#epoch
    this.#world.committedOffset = Math.max(this.#world.committedOffset, 0)
  }

  /** Commits `waiting`, before anything of the queue is delivered. */
  begin(): void {
    this.commit()
    this.isBegun = true
  }

  get lent(): number {
    return this.#lent
  }

  /** Reads a record of `events`, and puts its message into the queue. */
  read(): void {
    const world = this.#world
    while (world.settled.has(this.#next)) this.#next++
    const offset = this.#next
    if (offset >= world.events) return
    this.#next++
    const source = { topic: 'events', partition: 0, offset }
    const message = { destinationId: 'a', messageId: `m${offset}`, source }
    const settle = (): void => {
      if (this.isPresent) world.settled.add(offset)
    }
    if (offset >= world.readBelow) this.queue.before.forget('events')
    else if (this.queue.before.has(message)) {
      settle()
      return
    }
    this.queue.begin('events')
    const headers = { 'destination-id': 'a', 'message-id': `m${offset}`, origin: `events/0/${offset}` }
    const record = { key: null, value: Buffer.from(String(offset)), headers, source }
    void this.queue.append(record, this.#owners.codeOf('a', 'fresh')).then(settle)
  }

  pull(): void {
    this.queue.pull(this.#owners.codeOf('a', 'fresh'), 1)
  }

  /** Delivers what was taken out of the queue. */
  deliver(): void {
    for (const { message, record } of this.#taken.splice(0)) {
      if (this.isLost) {
        record.giveBack()
        continue
      }
      this.#world.delivered.push(message)
      record.settle()
    }
  }

  async look(): Promise<void> {
    if (!this.queue.isLookDue(Infinity)) return
    const reader = {
      ranges: async () => ({
        topicId: 't',
        ranges: new Map([[0, { start: 0, end: this.#world.waiting.length }]]),
      }),
    }
    await lookAt(new Map([[0, this.queue]]), { reader, topic: 'waiting', nowMs: performance.now() })
  }
}

async function goOn(): Promise<void> {
  for (let turns = 0; turns < 6; turns++) await new Promise((resolve) => setImmediate(resolve))
}

async function take(world: Installation, isReadAgain: boolean): Promise<void> {
  await vi.advanceTimersByTimeAsync(10)
  world.readBelow = isReadAgain ? world.events : 0
  const tenant = new Tenant(world)
  world.tenants.push(tenant)
  await tenant.queue.load()
}

/** Ends the tenure of the present owner. */
async function end(
  world: Installation,
  how: 'kill' | 'suspend' | 'hand over',
  isWritten: boolean,
): Promise<void> {
  const { present } = world
  if (present === undefined) return
  if (how === 'hand over') {
    present.isLost = true
    present.queue.tick()
    present.deliver()
    for (let looks = 0; present.lent > 0 && looks < 10; looks++) {
      await present.look()
      await vi.advanceTimersByTimeAsync(1_000)
      await goOn()
    }
  }
  present.isPresent = false
  if (how === 'kill') {
    present.isDead = true
    for (const one of world.appends.filter(({ owner }) => owner === present)) {
      world.appends.splice(world.appends.indexOf(one), 1)
      if (isWritten) one.land(false)
    }
  }
  await take(world, how !== 'hand over')
}

const pick = fc.nat({ max: 99 })
const acts = [
  'event',
  'read',
  'read',
  'read',
  'land',
  'land',
  'land',
  'begin',
  'commit',
  'pull',
  'deliver',
  'look',
  'time',
  'kill',
  'suspend',
  'suspend',
  'hand over',
  'wake',
  'a zombie looks',
  'a zombie looks',
] as const
type Act = (typeof acts)[number]

async function play(world: Installation, act: Act, nth: number): Promise<void> {
  const { present } = world
  if (present === undefined) return
  const zombies = world.tenants.filter(({ isPresent, isDead, isLost }) => !isPresent && !isDead && !isLost)
  const zombie = zombies[nth % Math.max(1, zombies.length)]
  switch (act) {
    case 'event':
      world.events++
      break
    case 'read':
      present.read()
      break
    case 'land': {
      // A producer keeps the order of its records.
      const firsts = world.appends.filter(
        (one, at) => world.appends.findIndex(({ owner }) => owner === one.owner) === at,
      )
      const append = firsts[nth % Math.max(1, firsts.length)]
      if (append !== undefined) world.appends.splice(world.appends.indexOf(append), 1)
      append?.land(true)
      break
    }
    case 'begin':
      present.begin()
      break
    case 'commit':
      present.commit()
      break
    case 'pull':
      present.pull()
      break
    case 'deliver':
      for (const tenant of world.tenants) if (!tenant.isDead) tenant.deliver()
      break
    case 'look':
      await present.look()
      break
    case 'time':
      for (const tenant of world.tenants) if (!tenant.isDead) tenant.queue.tick()
      await vi.advanceTimersByTimeAsync(1_000)
      break
    case 'kill':
    case 'suspend':
    case 'hand over':
      await end(world, act, nth % 2 === 0)
      break
    case 'wake':
      if (zombie === undefined) break
      zombie.isLost = true
      zombie.queue.tick()
      break
    case 'a zombie looks':
      await zombie?.look()
      break
  }
  await goOn()
}

/** Lets a last owner deliver all that is left. */
async function finish(world: Installation): Promise<void> {
  await end(world, 'kill', true)
  for (let rounds = 0; rounds < 200; rounds++) {
    const { present } = world
    if (present === undefined) return
    present.begin()
    for (let reads = 0; reads < 3; reads++) present.read()
    for (const append of world.appends.splice(0)) append.land(true)
    await goOn()
    await present.look()
    await goOn()
    present.pull()
    await goOn()
    present.deliver()
    if (
      world.settled.size === world.events &&
      present.queue.isEmpty &&
      rounds > world.events + world.waiting.length
    )
      return
  }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
})

afterEach(() => {
  vi.useRealTimers()
})

test('whoever owns a unit in turn, and whoever wakes up, each message is delivered', async () => {
  let repeats = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom(...acts), pick), { minLength: 20, maxLength: 40, size: 'max' }),
      async (steps) => {
        const world = new Installation()
        await take(world, false)
        for (const [act, nth] of steps) await play(world, act, nth)
        await finish(world)
        const lost = [...Array(world.events).keys()].filter((one) => !world.delivered.includes(one))
        repeats += world.delivered.length - new Set(world.delivered).size
        expect({ lost, left: world.events - world.settled.size }).toEqual({ lost: [], left: 0 })
      },
    ),
    { numRuns: Number(process.env['TENURES_RUNS'] ?? 500) },
  )
  process.stdout.write(`${repeats} repeats\n`)
})

/** Lets the present owner read all records of `events`. */
async function readAll(world: Installation): Promise<Tenant | undefined> {
  const { present } = world
  for (let reads = 0; reads < world.events; reads++) present?.read()
  await goOn()
  return present
}

test('what a zombie appends is void, also if its successor has read all before it has committed the queue', async () => {
  const world = new Installation()
  await take(world, false)
  world.present?.begin()
  const zombie = await readAll(world)
  await end(world, 'suspend', true)
  const successor = await readAll(world)
  const late = world.appends.splice(0).filter(({ owner, land }) => {
    if (owner === successor) land(true)
    return owner === zombie
  })
  await goOn()
  successor?.begin()
  successor?.queue.tick()
  await successor?.look()
  for (const { land } of late) land(true)
  await vi.advanceTimersByTimeAsync(lookMs.early)
  await successor?.look()
  await goOn()
  // It writes its marks.
  await vi.advanceTimersByTimeAsync(1_000)
  await finish(world)
  expect(world.delivered).toEqual([0, 1])
})

test('what an owner has queued that was killed before it has committed the queue is not queued again', async () => {
  const world = new Installation()
  await take(world, false)
  world.present?.begin()
  await end(world, 'kill', true)
  await readAll(world)
  await end(world, 'kill', true)
  expect(world.waiting).toHaveLength(2)
  await finish(world)
  expect(world.delivered).toEqual([0, 1])
})
