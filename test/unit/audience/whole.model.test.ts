import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { partitionOf } from '../../../src/message/partitioner.ts'
import type { Effect } from '../pipeline/simulated-customers.ts'
import { partitions, topics, turns, usersOf } from './simulated-log.ts'
import { WholeWorld } from './whole-world.ts'

const allUsers = [...usersOf(0, 2), ...usersOf(1, 1)]
const allAudiences = ['lions', 'tigers']

/** A step of a run. The same object is the model and the real system, so fast-check gets it twice. */
type Step = fc.AsyncCommand<WholeWorld, WholeWorld>

function nth<T>(all: readonly T[], index: number): T {
  const one = all[index % all.length]
  if (one === undefined) throw new Error('there is none')
  return one
}

function step(
  name: string,
  run: (world: WholeWorld) => void | Promise<void>,
  check: (world: Readonly<WholeWorld>) => boolean = () => true,
): Step {
  return {
    check: (world) => check(world),
    async run(_, world) {
      await run(world)
      await turns(6)
      expect(world.member.owner.faults).toEqual([])
    },
    toString: () => name,
  }
}

const pick = fc.nat({ max: 99 })
/**
 * The number of a user among the users of a run. There are few users, so that several values of the same user
 * are under way at once.
 */
const user = fc.nat({ max: allUsers.length - 1 })
const audience = fc.nat({ max: allAudiences.length - 1 })
const unit = fc.nat({ max: partitions - 1 })
const ago = fc.constantFrom(0, 0, 0, 1_000, 60_000)
/** True in one of ten cases. */
const rarely = pick.map((one) => one < 10)
/** Late effects are frequent, because they are the hardest to handle. */
const effect = fc.constantFrom<Effect>('nothing', 'at once', 'late', 'late', 'late')

const toChange = fc
  .tuple(user, audience, fc.boolean(), ago, rarely)
  .map(([who, which, member, agoMs, isElsewhere]) =>
    step(
      `user ${who} ${member ? 'enters' : 'leaves'} audience ${which} ${agoMs} ms ago${isElsewhere ? ', elsewhere' : ''}`,
      (world) => {
        const userId = nth(world.users, who)
        const own = partitionOf(userId, partitions)
        world.change(userId, nth(world.audiences, which), member, agoMs, isElsewhere ? 1 - own : own)
      },
    ),
  )
const toRepeat = fc
  .tuple(unit, pick)
  .map(([where, at]) => step(`a record of ${where} again (${at})`, (world) => world.repeat(where, at)))
const toSync = fc
  .tuple(audience, fc.subarray(allUsers), fc.integer({ min: 1, max: 2 }), ago, unit)
  .map(([which, members, parts, agoMs, where]) =>
    step(
      `a sync of audience ${which} in ${where}: ${members.join()} in ${parts}, ${agoMs} ms ago`,
      (world) => {
        const own = members.filter(
          (who) => world.users.includes(who) && partitionOf(who, partitions) === where,
        )
        world.sync(nth(world.audiences, which), own, parts, agoMs, where)
      },
    ),
  )
const toSend = fc.tuple(pick, rarely).map(([at, isLost]) =>
  step(
    `a part is ${isLost ? 'lost' : 'sent'} (${at})`,
    ({ unsent }) => {
      const [send] = unsent.splice(at % unsent.length, 1)
      if (!isLost) send?.()
    },
    ({ unsent }) => unsent.length > 0,
  ),
)
const toRead = fc
  .tuple(
    fc.constantFrom(topics.changes, topics.states, topics.states),
    unit,
    fc.integer({ min: 1, max: 8 }),
    fc.boolean(),
  )
  .map(([topic, where, count, toZombie]) =>
    step(
      `${count} of ${topic} ${where}${toZombie ? ' to the zombie' : ''}`,
      ({ member, zombie }) => (toZombie ? zombie : member)?.owner.deliver(topic, where, count),
      ({ member, zombie }) => {
        const owner = (toZombie ? zombie : member)?.owner
        return owner !== undefined && !owner.isLeaving && owner.left(topic, where) > 0
      },
    ),
  )
/** Lets the broker take some writes, to any topic. */
const toLand = fc
  .tuple(pick, fc.integer({ min: 1, max: 6 }), fc.boolean(), fc.boolean())
  .map(([at, count, isAcknowledged, ofZombie]) =>
    step(
      `${count} land${isAcknowledged ? '' : ' unheard'}${ofZombie ? ' of the zombie' : ''} (${at})`,
      async ({ member, zombie }) => {
        const owner = (ofZombie ? zombie : member)?.owner
        if (owner === undefined) return
        for (let i = 0; i < Math.min(count, owner.pending.length); i++) {
          owner.land((at + i) % owner.pending.length, { isAcknowledged })
          await turns(2)
        }
      },
      ({ member, zombie }) => ((ofZombie ? zombie : member)?.owner.pending.length ?? 0) > 0,
    ),
  )
const toHear = fc.boolean().map((ofZombie) =>
  step(
    `acknowledgements arrive${ofZombie ? ' at the zombie' : ''}`,
    ({ member, zombie }) => {
      const owner = (ofZombie ? zombie : member)?.owner
      for (const acknowledge of owner?.unacknowledged.splice(0) ?? []) acknowledge()
    },
    ({ member, zombie }) => ((ofZombie ? zombie : member)?.owner.unacknowledged.length ?? 0) > 0,
  ),
)

/** Lets the owner read everything and write everything, without any disturbance. */
const toGoOn = fc.constant(step('all is read, and lands', (world) => world.goOn()))

type Answer = [name: string, outcome: Outcome, mayHaveArrived: boolean, effect: Effect]
const toGiveAnswer: fc.Arbitrary<Answer> = fc.oneof(
  { weight: 16, arbitrary: fc.constant<Answer>(['200', { kind: 'answer', status: 200 }, false, 'nothing']) },
  {
    weight: 16,
    arbitrary: fc
      .tuple(
        fc.constantFrom<[string, Outcome]>(
          ['500', { kind: 'answer', status: 500 }],
          ['timeout', { kind: 'timeout' }],
          ['reset', { kind: 'connection', code: 'ECONNRESET' }],
          ['429 after a lost one', { kind: 'answer', status: 429 }],
          ['200 after a lost one', { kind: 'answer', status: 200 }],
        ),
        effect,
      )
      .map(([[name, outcome], does]): Answer => [name, outcome, true, does]),
  },
  {
    weight: 8,
    arbitrary: fc.constantFrom<Answer>(
      ['429', { kind: 'answer', status: 429 }, false, 'nothing'],
      ['refused', { kind: 'connection', code: 'ECONNREFUSED' }, false, 'nothing'],
    ),
  },
  { weight: 1, arbitrary: fc.constant<Answer>(['400', { kind: 'answer', status: 400 }, false, 'nothing']) },
)
const toAnswer = fc.tuple(pick, toGiveAnswer).map(([at, [name, outcome, mayHaveArrived, does]]) =>
  step(
    `answer ${name}, does ${does} (${at})`,
    ({ customers }) => {
      customers.answer(nth(customers.requests, at), outcome, mayHaveArrived, does)
    },
    ({ customers }) => customers.requests.length > 0,
  ),
)
const toLandEffect = pick.map((at) =>
  step(
    `a late effect (${at})`,
    ({ customers }) => customers.landEffect(at),
    ({ customers }) => customers.late.length > 0,
  ),
)
const toComeDue = pick.map((at) =>
  step(
    `a retry comes due (${at})`,
    (world) => world.comeDue(nth(world.toComeDue, at)),
    ({ toComeDue: due }) => due.length > 0,
  ),
)
const toPull = fc.tuple(pick, fc.integer({ min: 1, max: 3 })).map(([at, most]) =>
  step(
    `${most} are pulled (${at})`,
    ({ member: { queue, pipeline }, destinationIds }) => {
      pipeline.refill(nth(destinationIds, at))
      queue?.hand(most)
    },
    ({ member }) => member.queue !== undefined && !member.owner.isLeaving,
  ),
)
const toPause = fc.tuple(pick, fc.boolean()).map(([at, isPaused]) =>
  step(`a destination is ${isPaused ? 'paused' : 'on'} (${at})`, ({ paused, destinationIds }) => {
    const to = nth(destinationIds, at)
    if (isPaused) paused.add(to)
    else paused.delete(to)
  }),
)
const toPass = fc.constantFrom(1_000, 10_000, 300_000, 700_000).map((ms) =>
  step(`${ms} ms pass`, ({ log }) => {
    log.nowMs += ms
  }),
)
const toCommit = fc.constant(step('commit', (world) => world.commit()))
const toCompact = unit.map((where) =>
  step(`compaction of ${where}`, (world) => {
    world.commit()
    world.log.compact(where)
  }),
)
const toCrash = fc
  .record({
    effects: fc.array(effect, { minLength: 1, maxLength: 3 }),
    isWritten: fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }),
    isDiskLost: fc.boolean(),
    isCommitLost: rarely,
  })
  .map((how) => step(`a crash ${JSON.stringify(how)}`, (world) => world.crash(how)))
const toOvertake = fc
  .record({ isUnaware: fc.boolean(), isDiskLost: fc.boolean(), isCommitLost: rarely })
  .map((how) => step(`an overtaking ${JSON.stringify(how)}`, (world) => world.overtake(how)))
const toLeave = fc.constant(
  step(
    'leave',
    (world) => world.leave(),
    ({ member }) => !member.owner.isLeaving,
  ),
)
const toHandOver = fc.boolean().map((isDiskLost) =>
  step(
    `a hand-over${isDiskLost ? ' to an empty disk' : ''}`,
    (world) => world.handOver(isDiskLost),
    ({ isLeft }) => isLeft,
  ),
)
const toRestart = fc
  .tuple(fc.constantFrom<Outcome>({ kind: 'answer', status: 200 }, { kind: 'timeout' }), effect)
  .map(([outcome, does]) =>
    step(`a restart, ${outcome.kind}, ${does}`, (world) => world.restart(outcome, does)),
  )

const steps = fc.commands<WholeWorld, WholeWorld, false>(
  [
    fc.oneof(
      { weight: 12, arbitrary: toChange },
      { weight: 1, arbitrary: toRepeat },
      { weight: 2, arbitrary: toSync },
      { weight: 4, arbitrary: toSend },
      { weight: 10, arbitrary: toRead },
      { weight: 10, arbitrary: toLand },
      { weight: 2, arbitrary: toHear },
      { weight: 10, arbitrary: toGoOn },
      { weight: 20, arbitrary: toAnswer },
      { weight: 2, arbitrary: toLandEffect },
      { weight: 8, arbitrary: toComeDue },
      { weight: 10, arbitrary: toPull },
      { weight: 2, arbitrary: toPause },
      { weight: 1, arbitrary: toPass },
      { weight: 4, arbitrary: toCommit },
      { weight: 1, arbitrary: toCompact },
      { weight: 2, arbitrary: toCrash },
      { weight: 2, arbitrary: toOvertake },
      { weight: 1, arbitrary: toLeave },
      { weight: 2, arbitrary: toHandOver },
      { weight: 1, arbitrary: toRestart },
    ),
  ],
  { maxCommands: 150, size: 'max' },
)

test(
  'the last value that a customer applied is the one that the changes say once retries are done, or its destination is behind',
  { timeout: 600_000 },
  async () => {
    const seen = new Map<string, number>()
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          users: fc.constantFrom(1, 1, 2, 3).map((count) => allUsers.slice(-count)),
          audiences: fc.constantFrom(1, 1, 2).map((count) => allAudiences.slice(0, count)),
          destinations: fc.constantFrom(1, 1, 2),
          hasQueue: fc.constantFrom(true, true, false),
          isCramped: fc.constantFrom(false, false, true),
          isPrompt: fc.boolean(),
          maxInFlight: fc.constantFrom(1, 100),
        }),
        steps,
        fc.infiniteStream(pick),
        async (settings, taken, picks) => {
          const world = new WholeWorld(settings)
          await world.member.owner.begin()
          try {
            await fc.asyncModelRun(() => ({ model: world, real: world }), taken)
            await world.finish(() => picks.next().value ?? 0)
            expect(world.faultsAtEnd()).toEqual([])
          } finally {
            world.stop()
          }
          for (const happening of world.seen) seen.set(happening, (seen.get(happening) ?? 0) + 1)
        },
      ),
      { numRuns: Number(process.env['WHOLE_RUNS'] ?? 200), unbiased: true },
    )
    // Together, the runs have met all events that can happen.
    expect([...seen.keys()].sort()).toEqual(
      expect.arrayContaining([
        'a delivered one was outlasted',
        'a destination is behind',
        'a destination is where it should be',
        'a newer one took the place of one that waited',
        'a restart',
        'an effect came late',
        'an owner crashed',
        'an owner was overtaken',
        'an owner was overtaken, unreported',
        'dead: failed_for_good',
        'judged: send',
        'judged: send_current',
        'judged: superseded',
        'parked: failed',
        'parked: handover',
        'parked: paused',
        'parked: shutdown',
        'parked: uncertain',
        'pulled',
        'superseded',
        'units were handed over',
      ]),
    )
  },
)
