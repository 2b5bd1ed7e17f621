import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import type { Effect } from './simulated-customers.ts'
import { SimulatedUnit } from './simulated-unit.ts'

/** A step of a run. The same object is the model and the real system, so fast-check gets it twice. */
type Step = fc.AsyncCommand<SimulatedUnit, SimulatedUnit>

/** Returns a step that acts on one of `choices`. The step is skipped while there are no choices. */
function step<T>(
  name: string,
  pick: number,
  choices: (unit: Readonly<SimulatedUnit>) => readonly T[],
  run: (unit: SimulatedUnit, choice: T) => void,
): Step {
  return {
    check: (unit) => choices(unit).length > 0,
    run: async (_, unit) => {
      const among = choices(unit)
      const choice = among[pick % among.length]
      if (choice === undefined) return
      run(unit, choice)
      await unit.pause()
    },
    toString: () => `${name} (${pick})`,
  }
}

type Answer = [name: string, outcome: Outcome, mayHaveArrived: boolean, effects: readonly Effect[]]

const anything: readonly Effect[] = ['nothing', 'at once', 'late', 'late', 'late']
const nothing: readonly Effect[] = ['nothing']
const good: Answer = ['200', { kind: 'answer', status: 200 }, false, nothing]
const unclear: readonly Answer[] = [
  ['500', { kind: 'answer', status: 500 }, false, anything],
  ['timeout', { kind: 'timeout' }, true, anything],
  ['reset', { kind: 'connection', code: 'ECONNRESET' }, true, anything],
  ['429 after a lost one', { kind: 'answer', status: 429 }, true, anything],
  ['200 after a lost one', { kind: 'answer', status: 200 }, true, anything],
]
const clear: readonly Answer[] = [
  ['429', { kind: 'answer', status: 429 }, false, nothing],
  ['refused', { kind: 'connection', code: 'ECONNREFUSED' }, false, nothing],
  ['no connection in time', { kind: 'timeout' }, false, nothing],
  ['proxy', { kind: 'proxy', code: 'CONNECT_503', isDown: false }, false, nothing],
]
const final: readonly Answer[] = [['400', { kind: 'answer', status: 400 }, false, nothing]]

const pick = fc.nat({ max: 99 })
/** Late effects are frequent, because they are the hardest to handle. */
const effect = fc.constantFrom<Effect>('nothing', 'at once', 'late', 'late', 'late')

const toChange = pick.map((nth) =>
  step(
    'a value changes',
    nth,
    ({ users }) => users,
    (unit, user) => unit.change(user),
  ),
)
const toTake = fc.constant(
  step(
    'take',
    0,
    ({ owner, toTake: records }) => (owner.isLeaving ? [] : records),
    (unit, record) => unit.take(record),
  ),
)
const toComeDue = pick.map((nth) =>
  step(
    'come due',
    nth,
    ({ owner, toComeDue: records }) => (owner.isLeaving ? [] : records),
    (unit, record) => unit.comeDue(record),
  ),
)
const toAnswer = fc
  .tuple(
    pick,
    fc.oneof(
      { weight: 8, arbitrary: fc.constant(good) },
      { weight: 8, arbitrary: fc.constantFrom(...unclear) },
      { weight: 4, arbitrary: fc.constantFrom(...clear) },
      { weight: 1, arbitrary: fc.constantFrom(...final) },
    ),
    pick,
  )
  .map(([nth, [name, outcome, mayHaveArrived, effects], nthEffect]) => {
    const does = effects[nthEffect % effects.length] ?? 'nothing'
    return step(
      `answer ${name}, does ${does}`,
      nth,
      ({ customers }) => customers.requests,
      ({ customers }, request) => customers.answer(request, outcome, mayHaveArrived, does),
    )
  })
const toLand = pick.map((nth) =>
  step(
    'a late effect',
    nth,
    ({ customers }) => customers.late,
    ({ customers }) => customers.land(nth),
  ),
)
const toAcknowledge = pick.map((nth) =>
  step(
    'acknowledge',
    nth,
    ({ produces }) => produces,
    (unit, produce) => unit.acknowledge(produce),
  ),
)
const toRule = fc.tuple(pick, fc.boolean()).map(([nth, isLate]) =>
  step(
    `judge${isLate ? ' late' : ''}`,
    nth,
    ({ questions }) => questions,
    (unit, question) => unit.rule(question, isLate),
  ),
)
const toCommit = fc
  .constantFrom('all' as const, 'all' as const, 'waiting' as const, 'others' as const)
  .map((what) =>
    step(
      `commit ${what}`,
      0,
      ({ owner, hasNews }) => (hasNews ? [owner] : []),
      (unit) => unit.commit(what),
    ),
  )
const toHand = fc.integer({ min: 1, max: 3 }).map((most) =>
  step(
    `hand ${most}`,
    0,
    ({ owner: { queue } }) => (queue !== undefined && queue.wanted > 0 ? [queue] : []),
    (_, queue) => queue.hand(most),
  ),
)
const toRefill = pick.map((nth) =>
  step(
    'refill',
    nth,
    ({ owner, destinationIds }) => (owner.isLeaving ? [] : destinationIds),
    ({ owner }, to) => owner.pipeline.refill(to),
  ),
)
const toOpenQueues = fc.constant(
  step(
    'the queues open or close',
    0,
    ({ settings }) => (settings.hasQueue ? [settings] : []),
    (unit) => {
      unit.isQueueOpen = !unit.isQueueOpen
    },
  ),
)
const toRecall = pick.map((nth) =>
  step(
    'recall',
    nth,
    ({ owner, toRecall: records }) => (owner.isLeaving ? [] : records),
    (unit, record) => unit.recall(record),
  ),
)
const toDelete = pick.map((nth) =>
  step(
    'a user is deleted',
    nth,
    (unit) => unit.users.filter((user) => !unit.isDeleted(user)),
    (unit, user) => unit.delete(user),
  ),
)
const toTakeDeletion = fc.constant(
  step(
    'take a deletion',
    0,
    ({ owner, toDelete: records }) => (owner.isLeaving ? [] : records),
    (unit, record) => unit.takeDeletion(record),
  ),
)
const toCrash = fc
  .tuple(
    fc.array(effect, { minLength: 1, maxLength: 4 }),
    fc.array(fc.boolean(), { minLength: 1, maxLength: 4 }),
  )
  .map(([effects, isWritten]) =>
    step(
      `crash ${effects.join()} ${isWritten.join()}`,
      0,
      ({ owner }) => [owner],
      (unit) => unit.crash(effects, isWritten),
    ),
  )
const toLeave = fc.constant(
  step(
    'leave',
    0,
    ({ owner }) => (owner.isLeaving ? [] : [owner]),
    (unit) => unit.leave(),
  ),
)
const toHandOver = fc.constant(
  step(
    'hand over',
    0,
    ({ isLeft, owner }) => (isLeft ? [owner] : []),
    (unit) => unit.handOver(),
  ),
)
const toOvertake = fc.constant(
  step(
    'overtake',
    0,
    ({ owner }) => (owner.isLeaving ? [owner] : []),
    (unit) => unit.overtake(),
  ),
)
const toSetState = fc
  .tuple(
    pick,
    fc.oneof(
      { weight: 6, arbitrary: fc.constant('on' as const) },
      { weight: 3, arbitrary: fc.constant('paused' as const) },
      { weight: 1, arbitrary: fc.constant('off' as const) },
    ),
  )
  .map(([nth, state]) =>
    step(
      `a destination is ${state}`,
      nth,
      ({ destinationIds }) => destinationIds,
      (unit, to) => unit.setState(to, state),
    ),
  )

// Commits are frequent. Work that isn't committed is done again after a crash, which would hide many faults.
const most = [
  toChange,
  toTake,
  toTake,
  toAnswer,
  toAnswer,
  toAcknowledge,
  toRule,
  toComeDue,
  toCommit,
  toCommit,
  toHand,
  toRefill,
]
const often = Array.from({ length: 8 }, () => most).flat()
const some = [toLand, toLeave, toHandOver, toHandOver, toSetState, toRecall, toTakeDeletion]
const steps = fc.commands<SimulatedUnit, SimulatedUnit, false>(
  [...often, ...some, ...some, toCrash, toOvertake, toDelete, toOpenQueues],
  { maxCommands: 150, size: 'max' },
)

test('the last value that a customer applied is the present one once retries are done, or its destination is behind', async () => {
  const seen = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        users: fc.constantFrom(1, 1, 2, 3),
        destinations: fc.constantFrom(1, 1, 2),
        maxInFlight: fc.constantFrom(1, 2, 100),
        isPrompt: fc.boolean(),
        isCramped: fc.constantFrom(false, false, true),
        hasQueue: fc.constantFrom(false, true, true),
        batch: fc.constantFrom(1, 1, 3),
      }),
      steps,
      fc.infiniteStream(pick),
      async (settings, taken, picks) => {
        const unit = new SimulatedUnit(settings)
        try {
          await fc.asyncModelRun(() => ({ model: unit, real: unit }), taken)
          await unit.finish(() => picks.next().value ?? 0)
          expect(unit.faultsAtEnd()).toEqual([])
        } finally {
          unit.stop()
        }
        for (const happening of unit.seen) seen.set(happening, (seen.get(happening) ?? 0) + 1)
      },
    ),
    { numRuns: Number(process.env['IDENTIFY_RUNS'] ?? 1_000), unbiased: true },
  )
  // Together, the runs have met all events that can happen.
  expect([...seen.keys()].sort()).toEqual([
    'a delivered one was outlasted',
    'a destination is behind',
    'a destination is where it should be',
    'a newer one took the place of one that waited',
    'a superseded one may have been begun',
    'a unit was handed over',
    'a user was deleted',
    'an effect came late',
    'an owner crashed',
    'an owner was overtaken',
    'dead: destination_off',
    'dead: failed_for_good',
    'judged: send',
    'judged: send_current',
    'judged: superseded',
    'judged: suppressed',
    'parked: failed',
    'parked: handover',
    'parked: overflow',
    'parked: paused',
    'parked: proxy',
    'parked: uncertain',
    'pulled',
    'queued: fresh',
    'queued: front',
    'queued: retry',
    'several were sent together',
    'superseded',
    'suppressed',
  ])
})
