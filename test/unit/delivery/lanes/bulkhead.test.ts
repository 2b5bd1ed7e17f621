import * as fc from 'fast-check'
import { afterEach, expect, test } from 'vitest'
import { Breaker, type TryClass } from '../../../../src/delivery/lanes/breaker.ts'
import {
  Bulkhead,
  type BulkheadOptions,
  type BulkheadDropReason,
  type PacedHook,
  type PacedTry,
} from '../../../../src/delivery/lanes/bulkhead.ts'
import { roomyBulkhead } from '../../../support/bulkhead.ts'
import { roomy } from '../../../support/roomy-hook.ts'
import { standStill } from '../../../support/stand-still.ts'
import { until } from '../../../support/until.ts'

const running: Bulkhead[] = []
afterEach(() => {
  for (const bulkhead of running.splice(0)) bulkhead.stop()
})

function bulkheadOf(options: Partial<BulkheadOptions> = {}): Bulkhead {
  const bulkhead = new Bulkhead({ ...roomyBulkhead, ...options })
  running.push(bulkhead)
  return bulkhead
}

/** Returns a hook that fails. Its breaker allows no try of the class `between`. */
function downHook(cap?: number): PacedHook {
  const breaker = new Breaker(
    { failureShare: 0.5, minResults: 10, windowMs: 10_000, openMs: 60_000, maxOpenMs: 60_000 },
    roomy,
  )
  for (let i = 0; i < 10; i++)
    breaker.ended(breaker.begun(performance.now(), 'first'), 'failure', performance.now())
  return { breaker, cap }
}

class Try implements PacedTry {
  readonly hook: PacedHook
  readonly tryClass: TryClass
  readonly bytes = 100
  obstacle: PacedTry['obstacle']
  readonly #started: Try[]
  droppedFor: BulkheadDropReason | undefined

  constructor(started: Try[], hook: PacedHook, tryClass: TryClass = 'first') {
    this.#started = started
    this.hook = hook
    this.tryClass = tryClass
  }

  start(): void {
    this.#started.push(this)
    this.hook.breaker.begun(performance.now(), this.tryClass)
  }

  dropped(why: BulkheadDropReason): void {
    this.droppedFor = why
  }
}

function offerMany(bulkhead: Bulkhead, started: Try[], hook: PacedHook, count: number): Try[] {
  const tries = Array.from({ length: count }, () => new Try(started, hook))
  for (const one of tries) bulkhead.offer(one)
  return tries
}

test('nothing is started in the turn in which it is offered, and a few in each that follows', async () => {
  const bulkhead = bulkheadOf()
  const started: Try[] = []
  offerMany(bulkhead, started, downHook(), 20)
  expect(started).toHaveLength(0)
  await new Promise((resolve) => setImmediate(resolve))
  expect(started.length).toBeGreaterThan(0)
  expect(started.length).toBeLessThanOrEqual(4)
  await until('all are started', () => started.length === 20)
  expect(bulkhead).toMatchObject({ inFlight: 20, queued: 0, bytes: 2_000 })
})

test('one hook never has more than two thirds of the sockets, and another has its share at once', async () => {
  const bulkhead = bulkheadOf({ maxInFlight: 30, maxTries: 60 })
  const started: Try[] = []
  const [flooded, quiet] = [downHook(), downHook()]
  const offers = Array.from({ length: 100 }, () => bulkhead.offer(new Try(started, flooded)))
  expect(offers.filter((offer) => offer === 'taken')).toHaveLength(30)
  expect(offers.slice(30).every((offer) => offer === 'full')).toBe(true)
  await until('it has its share', () => started.length === 20)
  offerMany(bulkhead, started, quiet, 10)
  await until('the other has its own', () => started.length === 27)
  expect(started.slice(20).every(({ hook }) => hook === quiet)).toBe(true)
})

test('hooks take turns for sockets that become free, however much one has waiting', async () => {
  const bulkhead = bulkheadOf({ maxInFlight: 3, maxTries: 1_000 })
  const started: Try[] = []
  const [first, second] = [downHook(), downHook()]
  offerMany(bulkhead, started, first, 50)
  offerMany(bulkhead, started, second, 10)
  for (let ended = 0; ended < 20; ended++) {
    const one = await until('one is started', () => started[ended])
    bulkhead.ended(one)
  }
  expect(started.slice(0, 20).filter(({ hook }) => hook === second)).toHaveLength(10)
})

test('first tries go before last ones, and these before those in between', async () => {
  const bulkhead = bulkheadOf({ maxInFlight: 1 })
  const started: Try[] = []
  const hook = downHook()
  hook.breaker.ended(hook.breaker.begun(0, 'first'), 'success', performance.now())
  offerMany(bulkhead, started, hook, 1)
  await until('the socket is taken', () => started.length === 1)
  const classes: readonly TryClass[] = ['between', 'last', 'first', 'between', 'first', 'last']
  for (const tryClass of classes) bulkhead.offer(new Try(started, hook, tryClass))
  for (let ended = 0; ended < 6; ended++) {
    const one = await until('one is started', () => started[ended])
    bulkhead.ended(one)
  }
  await until('all are started', () => started.length === 7)
  expect(started.slice(1).map(({ tryClass }) => tryClass)).toEqual([
    'first',
    'first',
    'last',
    'last',
    'between',
    'between',
  ])
})

test("an owner's cap holds for a hook that fails", async () => {
  const bulkhead = bulkheadOf({ waitMs: 50 })
  const started: Try[] = []
  const tries = offerMany(bulkhead, started, downHook(3), 10)
  await until(
    'the others have waited',
    () => tries.filter(({ droppedFor }) => droppedFor === 'waited').length === 7,
  )
  expect(started).toHaveLength(3)
})

test('a hook with a closed breaker gets no more at once than it was learned to take', async () => {
  const bulkhead = bulkheadOf({ waitMs: 50 })
  const started: Try[] = []
  const breaker = new Breaker(
    { failureShare: 0.5, minResults: 10, windowMs: 1, openMs: 1, maxOpenMs: 1 },
    { ...roomy, hasRoom: () => started.length < 4 },
  )
  const tries = offerMany(bulkhead, started, { breaker, cap: undefined }, 10)
  await until(
    'the others have waited',
    () => tries.filter(({ droppedFor }) => droppedFor === 'waited').length === 6,
  )
  expect(started).toHaveLength(4)
})

test('what its destination no longer asks for is dropped when it has its turn', async () => {
  const bulkhead = bulkheadOf()
  const started: Try[] = []
  const tries = offerMany(bulkhead, started, downHook(), 2)
  for (const one of tries) one.obstacle = 'changed'
  await until('both are dropped', () => tries.every(({ droppedFor }) => droppedFor === 'changed'))
  expect(started).toEqual([])
})

test('a pause that the hook asked for is kept, and ended by nothing but its time', async () => {
  const bulkhead = bulkheadOf({ waitMs: 5_000 })
  const started: Try[] = []
  const hook: PacedHook = downHook()
  const fromMs = performance.now()
  hook.breaker.hold(fromMs + 300)
  offerMany(bulkhead, started, hook, 3)
  await until('all are started', () => started.length === 3)
  expect(performance.now() - fromMs).toBeGreaterThanOrEqual(300)
})

test('a pause that is longer than anything waits is not waited for', () => {
  const bulkhead = bulkheadOf({ waitMs: 100 })
  const hook = downHook()
  hook.breaker.hold(performance.now() + 1_000)
  expect(bulkhead.offer(new Try([], hook))).toBe('skipped')
})

test('a try in between of a hook that is down is not taken', () => {
  expect(bulkheadOf().offer(new Try([], downHook(), 'between'))).toBe('skipped')
})

test('while it is shut nothing is started, and nobody has waited too long', async () => {
  const bulkhead = bulkheadOf({ waitMs: 20 })
  const started: Try[] = []
  bulkhead.shut()
  const tries = offerMany(bulkhead, started, downHook(), 5)
  const untilMs = performance.now() + 100
  await until('time has passed', () => performance.now() > untilMs)
  expect(started).toHaveLength(0)
  expect(tries.every(({ droppedFor }) => droppedFor === undefined)).toBe(true)
  bulkhead.open()
  await until('all are started', () => started.length === 5)
})

test('a process that stood still has let nothing wait: all of it has its whole time when the process goes on', async () => {
  const waitMs = 400
  const bulkhead = bulkheadOf({ maxInFlight: 1, waitMs })
  const started: Try[] = []
  const tries = offerMany(bulkhead, started, downHook(), 2)
  await until('the first is started', () => started.length === 1, { everyMs: 1 })
  standStill(900)
  const onMs = performance.now()
  await until('the other has waited too long', () => tries[1]?.droppedFor === 'waited')
  expect(performance.now() - onMs).toBeGreaterThan(waitMs / 2)
})

test('what nobody asks for any more is dropped, and the rest started', async () => {
  const bulkhead = bulkheadOf()
  const started: Try[] = []
  bulkhead.shut()
  const tries = offerMany(bulkhead, started, downHook(), 6)
  for (const [at, one] of tries.entries()) one.obstacle = at % 2 === 0 ? 'abandoned' : undefined
  bulkhead.dropAbandoned()
  expect(tries.map(({ droppedFor }) => droppedFor)).toEqual([
    'abandoned',
    undefined,
    'abandoned',
    undefined,
    'abandoned',
    undefined,
  ])
  bulkhead.open()
  await until('the others are started', () => started.length === 3)
  for (const one of started) bulkhead.ended(one)
  expect(bulkhead).toMatchObject({ inFlight: 0, queued: 0, bytes: 0, hooks: 0 })
})

test('for any course of things each try is started or dropped once, and all room is given back', async () => {
  const step = fc.record({
    hook: fc.nat(2),
    tryClass: fc.constantFrom<TryClass>('first', 'last', 'between'),
    after: fc.constantFrom('nothing', 'turn', 'end', 'abandon'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const bulkhead = new Bulkhead({ maxInFlight: 5, maxTries: 30, maxBytes: 2_000, waitMs: 10_000 })
      const hooks = [downHook(), downHook(1), downHook()]
      const started: Try[] = []
      const taken: Try[] = []
      let ended = 0
      for (const { hook, tryClass, after } of steps) {
        const at = hooks[hook]
        if (at === undefined) throw new Error('no such hook')
        const one = new Try(started, at, tryClass)
        if (bulkhead.offer(one) === 'taken') taken.push(one)
        expect(bulkhead.inFlight).toBeLessThanOrEqual(5)
        if (after === 'turn') await new Promise((resolve) => setImmediate(resolve))
        const toEnd = after === 'end' ? started[ended] : undefined
        if (toEnd !== undefined) {
          ended++
          bulkhead.ended(toEnd)
        }
        if (after === 'abandon') {
          one.obstacle = 'abandoned'
          bulkhead.dropAbandoned()
        }
      }
      bulkhead.shut()
      bulkhead.dropAll()
      for (const one of started.slice(ended)) bulkhead.ended(one)
      const fates = taken.map(
        (one) => started.filter((each) => each === one).length + (one.droppedFor === undefined ? 0 : 1),
      )
      expect(fates.every((count) => count === 1)).toBe(true)
      expect(bulkhead).toMatchObject({ inFlight: 0, queued: 0, bytes: 0, hooks: 0 })
      bulkhead.stop()
    }),
    { numRuns: 300 },
  )
})
