import { expect, test } from 'vitest'
import { judge } from '../../../src/delivery/outcomes/verdict.ts'
import type { Delivery } from '../../../src/pipeline/delivery.ts'
import { Board, hookKey } from '../../../src/notices/board.ts'
import { Decider, toldRefusing } from '../../../src/notices/decider.ts'
import { encodeForgotten, encodeReport, encodeTold } from '../../../src/notices/notice-record.ts'
import { PauseDecider } from '../../../src/notices/pause-decider.ts'
import { encodePause } from '../../../src/notices/pause-record.ts'
import { Refusals } from '../../../src/notices/refusals.ts'
import { terms } from './terms.ts'

const minute = 60_000
const hour = 60 * minute
const crm = { destinationId: 'crm', hookId: 'main' }
const key = hookKey(crm)
const destination = {
  state: 'on',
  hookIds: ['main'],
  contents: new Map<string, string>(),
  urls: 'u',
  autoPauseMs: 2 * hour,
} as const

/** Two workers and the topic `notices`, on a clock that a test moves. The first worker decides. */
class World {
  nowMs = 1_000_000 * hour
  readonly board: Board
  readonly told: string[] = []
  readonly workers = [1, 2].map(
    () =>
      new Refusals({
        sourceId: 'sluice',
        reportAfterMs: 5 * minute,
        monotonicMs: () => this.nowMs - 999_999 * hour,
        now: () => this.nowMs,
      }),
  )
  readonly #decider = new Decider({ ...terms, windowMs: minute, refusingAfterMs: hour })
  readonly #pauses: PauseDecider

  constructor(refusalsFail = false) {
    this.board = new Board({ refusalsFail })
    this.#pauses = new PauseDecider({ staleMs: 75_000, steadyMs: 5 * minute, refusalsFail })
  }

  answers(worker: number, status: number, sourceId = 'shop'): void {
    const outcome = { kind: 'answer', status } as const
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only its destination and source are read
    const delivery = { destinationId: 'crm', sourceId } as Delivery
    const result = { hookId: 'main', outcome, verdict: judge(outcome), mayHaveArrived: false }
    this.workers[worker]?.observer.attempted?.(delivery, result, 5)
  }

  /** Lets time pass, with a look of each worker every half minute. `each` is called before each look. */
  pass(ms: number, each: () => void = () => undefined): void {
    for (const endMs = this.nowMs + ms; this.nowMs < endMs;) {
      this.nowMs += 30_000
      each()
      this.#look()
    }
  }

  #look(): void {
    for (const [index, worker] of this.workers.entries()) {
      worker.follow([...this.board.refusing(this.nowMs - 75_000).values(), ...toldRefusing(this.board)])
      const report = { failing: [], answered: [], counts: [], refusing: worker.refusing() }
      this.#take(encodeReport(`w${index}`, { ...report, accepted: worker.takeAccepted() }))
    }
    const { notices, forgotten } = this.#decider.decide(this.board, {
      nowMs: this.nowMs,
      isKnown: () => true,
      behind: [],
      secrets: [],
    })
    for (const forgottenKey of forgotten) this.#take(encodeForgotten(forgottenKey))
    for (const notice of notices) {
      this.told.push(notice.kind)
      this.#take(encodeTold({ notice, isSent: true }))
    }
    const situation = { nowMs: this.nowMs, isSound: true, destinationOf: () => destination }
    for (const record of this.#pauses.decide(this.board, situation)) this.#take(encodePause(record))
  }

  #take(record: ReturnType<typeof encodeReport>): void {
    this.board.take({ ...record, offset: this.board.position }, this.nowMs)
  }
}

test('a hook that refuses everything is told once it has done so for the time of the setting', () => {
  const world = new World()
  world.pass(55 * minute, () => world.answers(0, 401))
  expect(world.told).toEqual([])
  world.pass(3 * hour, () => world.answers(0, 401))
  expect(world.told).toEqual(['refusing'])
  expect(world.board.pauses.paused.size).toBe(0)
})

test('one refused message says nothing, nor do two, nor failures that are tried again', () => {
  const world = new World()
  for (const status of [404, 500, 404, 429]) world.answers(0, status)
  world.pass(4 * hour, () => world.answers(1, 503))
  expect(world.board.refusing(0).size).toBe(0)
  expect(world.told).toEqual([])
})

test('it is not told if another worker sees a success', () => {
  const world = new World()
  world.pass(4 * hour, () => {
    world.answers(0, 400)
    if (world.nowMs % (10 * minute) === 0) world.answers(1, 200)
  })
  expect(world.told).toEqual([])
})

test('after a success it may be told again', () => {
  const world = new World()
  world.pass(2 * hour, () => world.answers(0, 401))
  world.pass(5 * minute, () => world.answers(1, 200))
  expect(world.board.refusing(world.nowMs - 75_000).has(key)).toBe(false)
  world.pass(2 * hour, () => world.answers(0, 401))
  expect(world.told).toEqual(['refusing', 'refusing'])
})

test('with the setting, a destination that refuses everything is paused, whichever workers see it', () => {
  const world = new World(true)
  world.pass(90 * minute, () => world.answers(0, 403))
  expect(world.board.pauses.paused.size).toBe(0)
  world.pass(2 * hour, () => world.answers(world.nowMs % minute === 0 ? 0 : 1, 403))
  expect([...world.board.pauses.paused.keys()]).toEqual(['crm'])
})

test('what its own source gets back is ignored', () => {
  const world = new World()
  world.pass(2 * hour, () => world.answers(0, 401, 'sluice'))
  expect(world.workers[0]?.lasting()).toEqual([])
})
