import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { maxRememberedOffsets } from '../../../../src/kafka/wire/commit-metadata.ts'
import { memoryOf } from '../../../../src/kafka/wire/stored-commit.ts'
import { type Commit, type Fate, type Holding, type Look, SimulatedGroup } from './simulated-group.ts'

const maxMetadataCharacters = 4_096

/** A step of a run. The same object is the model and the real system, so fast-check gets it twice. */
type Step = fc.AsyncCommand<SimulatedGroup, SimulatedGroup>

/** Returns a step that acts on one of `choices`. The step is skipped while there are no choices. */
function step<T>(
  name: string,
  pick: number,
  choices: (group: Readonly<SimulatedGroup>) => readonly T[],
  run: (group: SimulatedGroup, choice: T) => void | Promise<void>,
): Step {
  return {
    check: (group) => choices(group).length > 0,
    run: async (_, group) => {
      const among = choices(group)
      const choice = among[pick % among.length]
      if (choice === undefined) return
      await run(group, choice)
      checkAll(group)
    },
    toString: () => `${name} (${pick})`,
  }
}

type Lent = { holding: Holding; offset: number }

const lentOf = (holdings: readonly Holding[]): Lent[] =>
  holdings.flatMap((holding) => [...holding.out].map((offset) => ({ holding, offset })))

const member = fc.nat({ max: 5 })
const gap = fc.oneof(
  { weight: 60, arbitrary: fc.constant(1) },
  { weight: 12, arbitrary: fc.integer({ min: 2, max: 5 }) },
  { weight: 1, arbitrary: fc.integer({ min: 100, max: 30_000 }) },
  // These gaps put records at the very end of what the metadata can hold.
  { weight: 1, arbitrary: fc.integer({ min: maxRememberedOffsets - 20, max: maxRememberedOffsets + 1 }) },
)
const fate = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Fate>('taken') },
  { weight: 1, arbitrary: fc.constantFrom<Fate>('answer lost', 'refused') },
)

const toAppend = fc.array(gap, { minLength: 1, maxLength: 20 }).map((gaps) =>
  step(
    `append ${gaps.join()}`,
    0,
    () => ['log'],
    (group) => group.append(gaps),
  ),
)
const toAppendMarkers = fc.integer({ min: 1, max: 3 }).map((count) =>
  step(
    `append ${count} markers`,
    0,
    () => ['log'],
    (group) => group.appendMarkers(count),
  ),
)
const toFetch = fc
  .tuple(member, fc.integer({ min: 1, max: 30 }), fc.boolean())
  .map(([pick, count, reachesOn]) =>
    step(
      `fetch ${count}${reachesOn ? ' and the markers behind' : ''}`,
      pick,
      ({ members }) => members.filter(({ mayFetch }) => mayFetch),
      (group, by) => group.fetch(by, count, reachesOn),
    ),
  )
const toSettle = fc.array(fc.nat({ max: 99 }), { minLength: 1, maxLength: 12 }).map((picks) =>
  step(
    `settle ${picks.join()}`,
    0,
    (group) => (lentOf(group.members.flatMap(({ holdings }) => holdings)).length > 0 ? ['records'] : []),
    (group) => {
      for (const pick of picks) {
        const lent = lentOf(group.members.flatMap(({ holdings }) => holdings))
        const record = lent[pick % lent.length]
        if (record !== undefined) group.settle(record.holding, record.offset)
      }
    },
  ),
)
const toGiveBack = fc.nat({ max: 99 }).map((pick) =>
  step(
    `give back ${pick}`,
    pick,
    ({ members }) => lentOf(members.flatMap(({ endingHoldings }) => endingHoldings)),
    (group, { holding, offset }) => group.giveBack(holding, offset),
  ),
)
const toCommit = fc.tuple(member, fate).map(([pick, becomes]) =>
  step(
    `commit, ${becomes}`,
    pick,
    ({ members }) => members.filter(({ holding, leaving }) => holding?.isBegun === true || leaving.size > 0),
    (group, by) => group.commit(by, becomes),
  ),
)
const toRebalance = member.map((pick) =>
  step(
    'gets the partition',
    pick,
    ({ joiners }) => joiners,
    (group, owner) => group.rebalance(owner),
  ),
)
const toLook = fc.tuple(member, fc.boolean(), fate).map(([pick, isGroupSilent, becomes]) =>
  step(
    `may begin? ${isGroupSilent ? 'the group says nothing' : 'the group says who is busy'}; commit ${becomes}`,
    pick,
    ({ members }) => members.filter(({ holding, isStopping }) => holding?.isBegun === false && !isStopping),
    (group, by) => group.look(by, isGroupSilent, becomes),
  ),
)
const toPause = member.map((pick) =>
  step(
    'pause',
    pick,
    ({ joiners }) => joiners,
    (_, which) => {
      which.isPaused = true
    },
  ),
)
const toResume = member.map((pick) =>
  step(
    'resume',
    pick,
    ({ members }) => members.filter(({ isPaused }) => isPaused),
    (_, which) => {
      which.isPaused = false
    },
  ),
)
const toQuiesce = member.map((pick) =>
  step(
    'quiesce',
    pick,
    ({ members }) => members.filter(({ isStopping }) => !isStopping),
    (_, which) => {
      which.isStopping = true
    },
  ),
)
const toCrash = member.map((pick) =>
  step(
    'crash',
    pick,
    ({ members }) => members,
    (group, which) => group.crash(which),
  ),
)
const toPass = fc.constantFrom(1_000, 8_000).map((ms) =>
  step(
    `${ms} ms pass`,
    0,
    () => ['clock'],
    (group) => group.pass(ms),
  ),
)

const steps = fc.commands(
  [
    fc.oneof(
      { weight: 6, arbitrary: toAppend },
      { weight: 2, arbitrary: toAppendMarkers },
      { weight: 18, arbitrary: toFetch },
      { weight: 18, arbitrary: toSettle },
      { weight: 6, arbitrary: toGiveBack },
      { weight: 16, arbitrary: toCommit },
      { weight: 20, arbitrary: toLook },
      { weight: 5, arbitrary: toRebalance },
      { weight: 2, arbitrary: toPause },
      { weight: 3, arbitrary: toResume },
      { weight: 2, arbitrary: toPass },
      { weight: 1, arbitrary: toQuiesce },
      { weight: 1, arbitrary: toCrash },
    ),
  ],
  { maxCommands: 100, size: 'max' },
)

function checkAll(group: SimulatedGroup): void {
  checkStored(group)
  for (const { fetched, handedOut, expected } of group.fetches.splice(0)) {
    expect(handedOut, `handed out of ${fetched.join()}`).toEqual(expected)
  }
  for (const taken of group.looks.splice(0)) checkLook(group, taken)
  for (const each of group.members) {
    const tracked = new Set([...(each.holding === undefined ? [] : [each.holding]), ...each.leaving])
    for (const holding of each.holdings) {
      if (holding.epoch === 0 || (!tracked.has(holding) && holding.out.size === 0)) continue
      checkHolding(group, holding, each.isStopping)
      if (tracked.has(holding) && holding.isBegun) checkNews(group, holding, each.isStopping)
    }
  }
}

/** Checks that the stored commit is true, and that no stale owner has put the group back. */
function checkStored({ commits, stored, log, settled }: SimulatedGroup): void {
  const last = commits.at(-1)
  if (last === undefined) return
  const { position, settledAbove, isFinal, epoch } = last
  expect({ offset: stored.offset, ...memoryOf(stored) }, 'what the broker has').toEqual({
    offset: position,
    settledAbove,
    isFinal,
    epoch,
  })
  const owed = new Set(unsettledBy(last, log))
  const lost = log.filter((offset) => !owed.has(offset) && !settled.has(offset))
  expect(lost, 'said to be settled, and is not').toEqual([])
  const wrong = commits.filter((commit, index) => {
    const before = commits[index - 1]
    return before !== undefined && putsBack(before, commit)
  })
  expect(wrong, 'commits that put the group back').toEqual([])
}

/**
 * Returns true if a commit puts the group back. Within an epoch, there is one owner, and its position never
 * goes back. An earlier epoch must not commit after a later one.
 */
function putsBack(before: Commit, { epoch, holding, position }: Commit): boolean {
  if (epoch !== before.epoch) return epoch < before.epoch
  return holding !== before.holding || position < before.position
}

function unsettledBy({ position, settledAbove }: Commit, log: readonly number[]): number[] {
  const above = new Set(settledAbove)
  return log.filter((offset) => offset >= position && !above.has(offset))
}

function checkLook(group: SimulatedGroup, taken: Look): void {
  const { holding, found, isTimeUp, isGroupSilent, isOtherBusy, isBusyHere, hasBegun } = taken
  const isFinal = found?.isFinal === true
  const isNobodyBusy = !isBusyHere && (found === undefined || (!isGroupSilent && !isOtherBusy))
  expect(hasBegun, 'may begin').toBe(isTimeUp || isFinal || isNobodyBusy)
  if (!hasBegun) return
  group.seen.add(
    isFinal ? 'begun after a final mark' : isNobodyBusy ? 'begun after nobody' : 'begun when time was up',
  )
  if (!isTimeUp && !isFinal) {
    const others = group.members.filter((each) => each.holding !== holding && group.isInGroup(each))
    expect(
      others.flatMap(({ leaving }) => lentOf([...leaving])),
      'out, though nobody was busy',
    ).toEqual([])
  }
  if (found === undefined || !isFinal) return
  // The final commit of the former owner has everything that this owner knew. Only offsets that didn't fit
  // into the metadata are repeated.
  expect([...found.holding.out], 'out after the final mark').toEqual([])
  const repeated = group.log.filter(
    (offset) =>
      holding.isToHandOut(offset) &&
      found.holding.known.has(offset) &&
      offset < found.position + maxRememberedOffsets,
  )
  expect(repeated, 'settled before the final mark').toEqual([])
}

function checkHolding({ stored, commits }: SimulatedGroup, holding: Holding, isEnding: boolean): void {
  const { partition, out, givenBack, longestFetch, epoch } = holding
  const { watermark } = partition
  const expected = holding.expected(isEnding)
  const committed = partition.commitOf(partition.standing(isEnding))
  const span = holding.top - expected.position
  expect(
    {
      ...memoryOf(committed),
      position: committed.offset,
      heldCount: watermark.heldCount,
      span: watermark.span,
      isIdle: partition.isIdle,
      wantsPause: partition.wantsPause,
      isOvertaken: partition.isOvertaken(stored),
      idleToldCount: holding.idleToldCount,
    },
    'what an owner knows',
  ).toEqual({
    ...expected,
    heldCount: out.size + givenBack.size,
    span,
    isIdle: out.size === 0,
    wantsPause: partition.isWaiting || span >= maxRememberedOffsets,
    isOvertaken: (commits.at(-1)?.epoch ?? 0) > epoch,
    idleToldCount: holding.idleCount,
  })
  expect(committed.metadata?.length).toBeLessThanOrEqual(maxMetadataCharacters)
  expect(span, 'span').toBeLessThan(maxRememberedOffsets + Math.max(1, longestFetch))
}

/** Checks that the broker knows everything about an owner that has no news. */
function checkNews({ stored, commits }: SimulatedGroup, holding: Holding, isEnding: boolean): void {
  const { partition } = holding
  if (partition.isNews(partition.standing(isEnding)) || partition.isOvertaken(stored)) return
  expect(commits.at(-1), 'without news').toEqual({ holding, ...holding.expected(isEnding) })
}

/**
 * Lets all members crash. Checks that the next owner gets exactly the records that the stored commit doesn't
 * say are settled, and that all records are settled then.
 */
async function checkNothingIsLost(group: SimulatedGroup): Promise<void> {
  for (const each of group.members) group.crash(each)
  const [owner] = group.members
  if (owner === undefined) return
  const found = group.commits.at(-1)
  const owed = found === undefined ? [...group.log] : unsettledBy(found, group.log)
  group.rebalance(owner)
  await group.look(owner, false, 'taken')
  const delivered: number[] = []
  while (owner.fetchPosition < group.logEnd) {
    group.fetch(owner, 50, true)
    delivered.push(...group.fetches.flatMap(({ handedOut }) => handedOut))
    for (const { holding, offset } of lentOf(owner.holdings)) group.settle(holding, offset)
    checkAll(group)
  }
  group.commit(owner, 'taken')
  checkAll(group)
  expect(delivered, 'redelivered').toEqual(owed)
  expect(group.log.filter((offset) => !group.settled.has(offset))).toEqual([])
  expect(group.stored.offset).toBe(group.logEnd)
}

test('for any history of a group: no record is lost, and none that the stored commit says settled is repeated', async () => {
  const seen = new Set<string>()
  const takeovers: Promise<void>[] = []
  await fc.assert(
    fc.asyncProperty(fc.nat({ max: 1_000 }), steps, async (logStart, taken) => {
      const group = new SimulatedGroup(logStart)
      for (const owner of group.joiners.slice(0, 1)) group.rebalance(owner)
      await fc.asyncModelRun(() => ({ model: group, real: group }), taken)
      await checkNothingIsLost(group)
      for (const happening of group.seen) seen.add(happening)
      takeovers.push(...group.takeovers)
    }),
    { numRuns: 1_000 },
  )
  await Promise.all(takeovers)
  // Together, the runs have met all events that can happen.
  expect([...seen].sort()).toEqual([
    'a commit of a former generation was refused',
    'a former owner made a commit',
    'a member came back under a new name',
    'a partition was kept',
    'a settled record was repeated',
    'a window was full',
    'an overtaken owner made no commit',
    'an owner began',
    'begun after a final mark',
    'begun after nobody',
    'begun when time was up',
  ])
})
