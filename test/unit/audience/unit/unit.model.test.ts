import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeEntry } from '../../../../src/audience/store/entry.ts'
import { stateKeyOf } from '../../../../src/audience/store/store-keys.ts'
import { parseVersion } from '../../../../src/audience/records/version.ts'
import { type Held, isOutOfTime, lastStates, referenceOf } from './reference.ts'
import { partitionOf } from '../../../../src/message/partitioner.ts'
import { partitions, topics, turns, usersOf } from '../simulated-log.ts'
import { UnitWorld } from '../unit-world.ts'

const ofFirst = 2
const users = [...usersOf(0, ofFirst), ...usersOf(1, 1)]
const audiences = ['lions', 'tigers']

type Step = fc.AsyncCommand<UnitWorld, UnitWorld>

function step(
  name: string,
  run: (world: UnitWorld) => void | Promise<void>,
  check: (world: UnitWorld) => boolean = () => true,
): Step {
  return {
    check: (world) => check(world),
    async run(_, world) {
      await run(world)
      await turns(6)
      expect(world.owner.faults).toEqual([])
    },
    toString: () => name,
  }
}

const user = fc.constantFrom(...users)
const audience = fc.constantFrom(...audiences)
const unit = fc.nat({ max: partitions - 1 })
const ago = fc.constantFrom(0, 0, 1_000, 2_000, 60_000, 3_600_000)

const toChange = fc
  .tuple(user, audience, fc.boolean(), ago, fc.nat({ max: 9 }))
  .map(([who, which, member, agoMs, wrong]) =>
    step(
      `${who} ${member ? 'enters' : 'leaves'} ${which} ${agoMs} ms ago${wrong === 0 ? ', elsewhere' : ''}`,
      (world) => {
        const own = users.indexOf(who) < ofFirst ? 0 : 1
        world.change({ user: who, audience: which, member, agoMs, partition: wrong === 0 ? 1 - own : own })
      },
    ),
  )
const toRepeat = fc.tuple(unit, fc.nat()).map(([where, pick]) =>
  step(
    `a record of ${where} again`,
    ({ log }) => {
      const records = log.records(topics.changes, where)
      const record = records[pick % records.length]
      if (record === undefined || isOutOfTime(log, where, record)) return
      log.append(topics.changes, where, { ...record, timestampMs: log.nowMs })
    },
    ({ log }) => log.records(topics.changes, where).length > 0,
  ),
)
const toSync = fc
  .tuple(audience, fc.subarray(users), fc.integer({ min: 1, max: 3 }), ago, unit, fc.nat({ max: 9 }))
  .map(([which, members, parts, agoMs, where, wrong]) =>
    step(`a sync of ${which} in ${where}: ${members.join()} in ${parts}, ${agoMs} ms ago`, (world) => {
      const own = members.filter((who) => wrong === 0 || (users.indexOf(who) < ofFirst ? 0 : 1) === where)
      world.sync({ audience: which, members: own, parts, agoMs, unit: where })
    }),
  )
const toSend = fc.tuple(fc.nat(), fc.nat({ max: 7 })).map(([pick, fate]) =>
  step(
    `a part is ${fate === 0 ? 'lost' : 'sent'}`,
    ({ unsent }) => {
      const [send] = unsent.splice(pick % unsent.length, 1)
      if (fate !== 0) send?.()
    },
    ({ unsent }) => unsent.length > 0,
  ),
)
const toDeliver = fc
  .tuple(
    fc.constantFrom(topics.changes, topics.changes, topics.states),
    unit,
    fc.integer({ min: 1, max: 8 }),
    fc.boolean(),
  )
  .map(([topic, where, count, toZombie]) =>
    step(`${count} of ${topic} ${where}${toZombie ? ' to the zombie' : ''}`, ({ owner, zombie }) => {
      if (toZombie) zombie?.deliver(topic, where, count)
      else owner.deliver(topic, where, count)
    }),
  )
const toLand = fc
  .tuple(fc.nat(), fc.integer({ min: 1, max: 6 }), fc.boolean(), fc.boolean())
  .map(([pick, count, isAcknowledged, ofZombie]) =>
    step(
      `${count} land${isAcknowledged ? '' : ' unheard'}${ofZombie ? ' of the zombie' : ''}`,
      async ({ owner, zombie }) => {
        const from = ofZombie ? zombie : owner
        if (from === undefined) return
        for (let i = 0; i < Math.min(count, from.pending.length); i++) {
          from.land((pick + i) % from.pending.length, { isAcknowledged })
          await turns(2)
        }
      },
    ),
  )
/**
 * A write may land twice, the second time much later: its connection was cut, the owner has repeated it, and has
 * written newer values since.
 */
const toLandTwice = fc.tuple(unit, fc.nat()).map(([where, pick]) =>
  step(
    `a write to ${where} lands once more`,
    ({ log }) => {
      const written = log.records(topics.states, where)
      const record = written[pick % written.length]
      if (record !== undefined) log.append(topics.states, where, { ...record, timestampMs: log.nowMs })
    },
    ({ log }) => log.records(topics.states, where).length > 0,
  ),
)
const toHear = fc.boolean().map((ofZombie) =>
  step('acknowledgements arrive', ({ owner, zombie }) => {
    for (const acknowledge of (ofZombie ? zombie : owner)?.unacknowledged.splice(0) ?? []) acknowledge()
  }),
)
const toPass = fc.constantFrom(1_000, 10_000, 300_000, 700_000).map((ms) =>
  step(`${ms} ms pass`, ({ log }) => {
    log.nowMs += ms
  }),
)
const toCrash = fc
  .tuple(fc.nat(0xffff), fc.nat({ max: 3 }))
  .map(([written, disk]) =>
    step(`a crash, ${disk === 0 ? 'with' : 'without'} the disk, ${written.toString(2)} written`, (world) =>
      world.crash(written, disk === 0),
    ),
  )
const toHandOver = fc
  .tuple(fc.boolean(), fc.boolean())
  .map(([isDiskLost, isUnaware]) =>
    step(`a hand-over${isDiskLost ? ' to an empty disk' : ''}${isUnaware ? ', unreported' : ''}`, (world) =>
      world.handOver(isDiskLost, isUnaware),
    ),
  )
const toCompact = unit.map((where) => step(`compaction of ${where}`, ({ log }) => log.compact(where)))
const toRemove = fc
  .tuple(user, fc.constantFrom(0, 0, 500, 1_500), fc.nat({ max: 9 }))
  .map(([who, agoMs, wrong]) =>
    step(`${who} is deleted as of ${agoMs} ms ago${wrong === 0 ? ', elsewhere' : ''}`, (world) => {
      const own = users.indexOf(who) < ofFirst ? 0 : 1
      world.remove(who, agoMs, wrong === 0 ? 1 - own : own)
    }),
  )
const toDeliverDeletions = fc
  .tuple(unit, fc.integer({ min: 1, max: 3 }), fc.boolean())
  .map(([where, count, toZombie]) =>
    step(`${count} of deletions ${where}${toZombie ? ' to the zombie' : ''}`, ({ owner, zombie }) => {
      if (toZombie) zombie?.deliver(topics.deletions, where, count)
      else owner.deliver(topics.deletions, where, count)
    }),
  )
const toRestart = fc.constant(step('a restart', (world) => world.restart()))

const steps = [
  { weight: 8, arbitrary: toChange },
  { weight: 2, arbitrary: toRepeat },
  { weight: 3, arbitrary: toSync },
  { weight: 6, arbitrary: toSend },
  { weight: 10, arbitrary: toDeliver },
  { weight: 8, arbitrary: toLand },
  { weight: 2, arbitrary: toLandTwice },
  { weight: 2, arbitrary: toHear },
  { weight: 2, arbitrary: toPass },
  { weight: 2, arbitrary: toCrash },
  { weight: 2, arbitrary: toHandOver },
  { weight: 1, arbitrary: toRestart },
  { weight: 2, arbitrary: toCompact },
]
const deletions = [
  { weight: 4, arbitrary: toRemove },
  { weight: 4, arbitrary: toDeliverDeletions },
]

/** Returns the states of a unit in the stores of a machine. */
function storedStates({ log }: UnitWorld, machine: number, where: number): Map<string, Held> {
  const stored = new Map<string, Held>()
  for (const [key, text] of log.disks.get(`machine-${machine}/unit-${where}`) ?? []) {
    const stateKey = stateKeyOf(key)
    if (!key.startsWith('s') || stateKey?.kind !== 'property') continue
    const entry = decodeEntry(text.toString())
    if (entry.kind !== 'property') continue
    const { id, value, version } = entry.state
    stored.set(`${stateKey.userId}/${id}`, { value, version })
  }
  return stored
}

/**
 * Leaves out deleted users who aren't members. A user who was deleted and a user who has left count as the
 * same. The order of these two events decides whether there is a record.
 */
function comparable(states: ReadonlyMap<string, Held>, { deletedUpToMs }: UnitWorld): Record<string, Held> {
  const compared = [...states].filter(
    ([name, { value }]) => value === 'true' || !deletedUpToMs.has(userOf(name)),
  )
  return Object.fromEntries(compared.sort(([a], [b]) => (a < b ? -1 : 1)))
}

function checkAll(world: UnitWorld): void {
  const { log, owner, deletedUpToMs } = world
  expect(owner.faults).toEqual([])
  expect([...owner.out], 'every record comes to its end').toEqual([])
  for (let where = 0; where < partitions; where++) {
    for (const topic of Object.values(topics)) {
      expect(log.commit(topic, where), `${topic} ${where}`).toBe(log.records(topic, where).length)
    }
    const reference = referenceOf(log, where, deletedUpToMs)
    const expected = comparable(reference, world)
    expect(comparable(lastStates(log, where), world), 'what compaction leaves').toEqual(expected)
    expect(comparable(storedStates(world, world.machine, where), world), 'what is stored').toEqual(expected)
    for (const name of namesOf(where)) {
      const values = toldOf(world, name)
      const told = values.at(-1)
      const wanted = reference.get(name)?.value
      const isNeither = deletedUpToMs.has(userOf(name)) && wanted !== 'true' && told !== 'true'
      expect(told === wanted || isNeither, `${name} is ${wanted}, told ${values.join()}`).toBe(true)
    }
  }
}

/** Returns the name of each pair of a user of the unit and an audience. */
function namesOf(where: number): string[] {
  const own = users.filter((one) => partitionOf(one, partitions) === where)
  return own.flatMap((one) => audiences.map((of) => `${one}/${of}`))
}

function userOf(name: string): string {
  return name.split('/')[0] ?? ''
}

/**
 * Returns the values that receivers have been told, in order. Values from before the deletion are left out,
 * because receivers no longer have them.
 */
function toldOf({ log, deletedUpToMs }: UnitWorld, name: string): string[] {
  const upToMs = deletedUpToMs.get(userOf(name)) ?? -Infinity
  return log.delivered
    .map(({ identify }) => identify)
    .filter(({ userId, body }) => `${userId}/${idOf(body)}` === name)
    .filter(({ since }) => (parseVersion(since)?.atMs ?? 0) > upToMs)
    .map(({ body }) => valueOf(body))
}

/** Checks that an owner without any disk finds the same states in the records that compaction has left. */
async function checkAnew(world: UnitWorld): Promise<void> {
  for (let where = 0; where < partitions; where++) world.log.compact(where)
  world.owner.kill(() => false)
  world.log.disks.clear()
  await world.begin(3)
  for (let where = 0; where < partitions; where++) {
    const expected = comparable(referenceOf(world.log, where, world.deletedUpToMs), world)
    expect(comparable(storedStates(world, 3, where), world), 'what is found anew').toEqual(expected)
  }
}

function idOf(body: Buffer): string {
  return JSON.parse(body.toString()).context.personas.computation_id
}

function valueOf(body: Buffer): string {
  return String(Object.values(JSON.parse(body.toString()).traits)[0])
}

test.each([
  { what: 'whatever happens', steps },
  { what: 'whoever is deleted', steps: [...steps, ...deletions] },
])(
  '$what, a unit comes to the state that its changes say, and receivers are told of it',
  { timeout: 600_000 },
  async ({ steps: possible }) => {
    let applied = 0
    const plan = fc.commands([fc.oneof(...possible)], { maxCommands: 60, size: 'max' })
    await fc.assert(
      fc.asyncProperty(plan, async (commands) => {
        const world = new UnitWorld()
        await world.owner.begin()
        try {
          await fc.asyncModelRun(() => ({ model: world, real: world }), commands)
          await world.finish()
          checkAll(world)
          await checkAnew(world)
          applied += world.syncs
        } finally {
          world.owner.kill(() => false)
          world.zombie?.kill(() => false)
        }
      }),
      { numRuns: Number(process.env['AUDIENCE_RUNS'] ?? 150) },
    )
    expect(applied).toBeGreaterThan(50)
  },
)
