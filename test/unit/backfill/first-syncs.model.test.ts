import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { HeldState, StatesPage, StatesQuery } from '../../../src/audience/store/states-page.ts'
import type { Connections } from '../../../src/backfill/connected-spaces.ts'
import { FirstSyncs } from '../../../src/backfill/first-syncs.ts'
import { MarkKeeper } from '../../../src/backfill/mark-keeper.ts'
import type { Connection } from '../../../src/backfill/marks.ts'

/**
 * A model of first syncs with one destination, one space, two units and two workers. Each worker learns of a
 * new catalog at its own time. Workers hand units to one another, and are killed. A value that the owner of a
 * unit routes reaches the destination at once if the catalog of this owner connects the space to the
 * destination.
 *
 * The log of marks and the judgement at the delivery are simulated. Other tests cover the states of a unit on
 * disk, and the deliveries themselves.
 */

const partitions = 2
const users = ['u0', 'u1', 'u2', 'u3', 'u4', 'u5']
const spaceId = 'space'
const destinationId = 'late'

type ConnectionState = 'none' | 'on' | 'paused'

function catalogOf(connectionState: ConnectionState): Connections {
  return {
    sources: new Map([[spaceId, { kind: 'audiences', enabled: true }]]),
    destinations: new Map([
      [
        destinationId,
        {
          state: connectionState === 'paused' ? 'paused' : 'on',
          sources: connectionState === 'none' ? [] : [spaceId],
        },
      ],
    ]),
  }
}

type Value = { readonly isMember: boolean; readonly at: number }
type Replayed = { readonly userId: string; readonly at: number; readonly isMember: boolean }
type Logged = { readonly offset: number; readonly key: Buffer; readonly value: Buffer }

/** The topics and stores. They stay when a simulated worker ends, and the next worker reads them. */
class World {
  readonly log: Logged[] = []
  /** The contents of the store of each unit, by unit. */
  readonly states = Array.from({ length: partitions }, () => new Map<string, Value>())
  /** The records of `replays` that weren't delivered yet. */
  readonly replays: Replayed[] = []
  /** The last value that the destination was told of each user. */
  readonly told = new Map<string, boolean>()
  connectionState: ConnectionState = 'none'
  clock = 0

  append({ key, value }: { key: Buffer; value: Buffer }): number {
    const offset = this.log.length
    this.log.push({ offset, key, value })
    return offset
  }

  /**
   * Delivers the records of `replays`. A record is left out if a newer value of its user was or will be
   * routed.
   */
  deliver(): void {
    for (const { userId, at, isMember } of this.replays.splice(0))
      if (this.states[unitOf(userId)]?.get(userId)?.at === at) this.told.set(userId, isMember)
  }
}

function unitOf(userId: string): number {
  return users.indexOf(userId) % partitions
}

class Worker {
  readonly #world: World
  readonly #firsts: FirstSyncs
  readonly units = new Set<number>()
  readonly failures: unknown[] = []
  readonly #waiting: (() => void)[] = []
  connectionState: ConnectionState
  #isKilled = false

  constructor(world: World) {
    this.#world = world
    this.connectionState = world.connectionState
    const keeper = new MarkKeeper({
      partitions,
      read: (from) => this.#read(from),
      write: (record) => this.#write(record),
      onMark: () => undefined,
    })
    let reading = Promise.resolve()
    this.#firsts = new FirstSyncs({
      isWanted: true,
      perSecond: 1e9,
      partitions,
      catalog: () => catalogOf(this.connectionState),
      marks: keeper,
      readMarks: () => (reading = reading.then(() => keeper.update())),
      statesOf: (unit, query) => this.#statesOf(unit, query),
      send: (_unit, connection, states) => this.#send(connection, states),
      backlogOf: () => 0,
      observer: {
        begun: () => undefined,
        sent: () => undefined,
        ended: () => undefined,
        stopped: () => undefined,
        leftOut: () => undefined,
        failed: (error) => this.failures.push(error),
      },
    })
  }

  get isIdle(): boolean {
    return this.#firsts.progress.every(({ state }) => state === 'waiting')
  }

  async acquire(unit: number): Promise<void> {
    await this.#firsts.acquire(unit)
    this.units.add(unit)
  }

  async release(unit: number): Promise<void> {
    const released = this.#firsts.release(unit)
    this.permit()
    await released
    this.units.delete(unit)
  }

  see(): void {
    if (this.connectionState === this.#world.connectionState) return
    this.connectionState = this.#world.connectionState
    this.#firsts.catalogChanged()
  }

  /** Lets the records that the worker sends go on their way. */
  permit(): void {
    for (const go of this.#waiting.splice(0)) go()
  }

  /** Kills the worker. Its open requests are never answered. */
  kill(): void {
    this.#isKilled = true
    void this.#firsts.stop()
  }

  route(userId: string, isMember: boolean): void {
    const at = ++this.#world.clock
    this.#world.states[unitOf(userId)]?.set(userId, { isMember, at })
    // A paused destination is told later, and nothing is lost until then. So the model counts the value as
    // told.
    if (this.connectionState !== 'none') this.#world.told.set(userId, isMember)
  }

  async #answer<T>(value: T): Promise<T> {
    await new Promise(setImmediate)
    return this.#isKilled ? new Promise<never>(() => undefined) : value
  }

  async *#read(from: number): AsyncIterable<readonly Logged[]> {
    const end = this.#world.log.length
    await this.#answer(undefined)
    yield this.#world.log.slice(from, end)
  }

  async #write(record: { key: Buffer; value: Buffer }): Promise<{ offset: number }> {
    if (this.#isKilled) return new Promise<never>(() => undefined)
    return this.#answer({ offset: this.#world.append(record) })
  }

  /** Returns a page of two states at most. */
  async #statesOf(unit: number, { after, withLeft }: StatesQuery): Promise<StatesPage | undefined> {
    const entries = [...(this.#world.states[unit] ?? [])]
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .filter(([userId]) => after === null || userId > after[1])
      .slice(0, 2)
    const last = entries.at(-1)?.[0]
    const states = entries.filter(([, { isMember }]) => withLeft || isMember).map(heldState)
    return this.#answer({ states, last: last === undefined ? null : (['vip', last] as const) })
  }

  async #send(_connection: Connection, states: readonly HeldState[]): Promise<void> {
    await new Promise<void>((resolve) => this.#waiting.push(resolve))
    if (this.#isKilled) return new Promise<never>(() => undefined)
    for (const { stateKey, state, offset } of states)
      this.#world.replays.push({ userId: stateKey.userId, at: offset, isMember: state.value === 'true' })
    return this.#answer(undefined)
  }
}

function heldState([userId, { isMember, at }]: [string, Value]): HeldState {
  const version = { atMs: at, isNative: true, partition: 0, offset: at }
  return {
    stateKey: { kind: 'property', userId, spaceId, property: 'vip' },
    state: { kind: 'audience', id: 'a', name: 'a', value: String(isMember), version, since: version },
    offset: at,
  }
}

type Step =
  | { kind: 'change'; userId: string; isMember: boolean }
  | { kind: 'edit'; connectionState: ConnectionState }
  | { kind: 'see' | 'permit' | 'kill'; worker: number }
  | { kind: 'move'; unit: number }
  | { kind: 'deliver' | 'wait' }

const worker = fc.nat({ max: 1 })
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('change' as const),
      userId: fc.constantFrom(...users),
      isMember: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('edit' as const),
      connectionState: fc.constantFrom<ConnectionState>('none', 'on', 'paused'),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('see' as const), worker }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('permit' as const), worker }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('kill' as const), worker }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('move' as const), unit: fc.nat({ max: partitions - 1 }) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('deliver' as const, 'wait' as const) }) },
)

/** Waits until everything that needs no permit has happened. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 12; turn++) await new Promise(setImmediate)
}

beforeEach(() => {
  // The clock goes on by two seconds at each call. So each change is noted, and no limit on the rate causes a
  // wait.
  let nowMs = 0
  vi.spyOn(performance, 'now').mockImplementation(() => (nowMs += 2_000))
})

afterEach(() => {
  vi.restoreAllMocks()
})

describe('whatever workers see of the catalog, whoever owns a unit, and whoever is killed', () => {
  test('a destination that is connected in the end knows who is in the space, and of nobody who isn’t', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { maxLength: 40, size: 'max' }), async (steps) => {
        const world = new World()
        const workers = [new Worker(world), new Worker(world)]
        const ownerOf = (unit: number): Worker | undefined => workers.find(({ units }) => units.has(unit))
        for (let unit = 0; unit < partitions; unit++) await workers[unit % 2]?.acquire(unit)
        // A connection that is made from here on is new.
        await turns()
        async function take({ kind, ...rest }: Step): Promise<void> {
          const one = 'worker' in rest ? workers[rest.worker] : undefined
          switch (kind) {
            case 'change':
              if ('userId' in rest) ownerOf(unitOf(rest.userId))?.route(rest.userId, rest.isMember)
              break
            case 'edit':
              if ('connectionState' in rest) world.connectionState = rest.connectionState
              break
            case 'see':
              one?.see()
              break
            case 'permit':
              one?.permit()
              await turns()
              break
            case 'move': {
              const from = 'unit' in rest ? ownerOf(rest.unit) : undefined
              const to = workers.find((other) => other !== from)
              if (from === undefined || !('unit' in rest)) break
              await from.release(rest.unit)
              await to?.acquire(rest.unit)
              break
            }
            case 'kill': {
              if (one === undefined || !('worker' in rest)) break
              // The standing `parted` of the worker's units is written before the worker is killed. In
              // reality, such a write takes only moments.
              await turns()
              one.kill()
              const next = new Worker(world)
              workers[rest.worker] = next
              for (const unit of one.units) await next.acquire(unit)
              break
            }
            case 'deliver':
              world.deliver()
              break
            case 'wait':
              await turns()
          }
        }
        for (const step of steps) await take(step)
        world.connectionState = 'on'
        for (const one of workers) one.see()
        for (let round = 0; round < 200; round++) {
          await turns()
          if (round > 2 && workers.every(({ isIdle }) => isIdle)) break
          for (const one of workers) one.permit()
        }
        world.deliver()
        for (const userId of users) {
          const isMember = world.states[unitOf(userId)]?.get(userId)?.isMember
          if (isMember === true) expect(world.told.get(userId)).toBe(true)
          else expect(world.told.get(userId)).not.toBe(true)
        }
        expect(workers.flatMap(({ failures }) => failures)).toEqual([])
        for (const one of workers) one.kill()
      }),
      { numRuns: 600 },
    )
  })
})
