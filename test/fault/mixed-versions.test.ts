import { setTimeout as passTime } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { takeEarlierVersion } from '../support/earlier-version.ts'
import type { ChangingGroup } from '../support/changing-group.ts'
import { type Report, underLoad } from '../support/group-load.ts'

/** The least time in minutes for which workers of two versions are in one group, for each earlier version. */
const minutes = Number(process.env['MIXED_VERSIONS_MINUTES'] ?? 5)
const workers = 3
const shownRepeats = 20
/** After the way back, no worker would read what waits in queues (docs/design/waiting.md). */
const ofThisVersion = { SLUICE_DELIVERY_WAITING_QUEUES: 'false' }

/**
 * Earlier versions from which a group may be upgraded, and to which it may be put back, while it works
 * (docs/kafka.md). The second value is a commit.
 */
const earlier = [
  ['whose group member is that of kafkajs', 'f9da74d5b3de70f83ecfccc5d774b6310f8a5969'],
  [
    'whose commits do not say of which epoch the last settled record is',
    '8eb382fd79b3a93f0cb30a9969718fb7fd61c696',
  ],
  ['of the day before static members could leave', 'f769ee079a0443a6e835082dbfc978726e958b74'],
  [
    'whose commits do not say for which partition and offset they are',
    'b04d60cc70f59ea08f8d2a5ba95ad8e9c0280463',
  ],
] as const

test.each(earlier)(
  'workers of a version %s are upgraded one by one under load, and put back: nothing is lost, and nothing is repeated',
  { timeout: 2 * minutes * 60_000 + 1_200_000 },
  async (_what, commit) => {
    let mixedMs = 0
    const before = await takeEarlierVersion(commit)
    onTestFinished(() => before.remove())
    const report = await underLoad({
      program: before.program,
      variablesOf: (_name, program) => (program === undefined ? ofThisVersion : {}),
      async change(group) {
        mixedMs = await upgradeAndPutBack(group, before.program)
      },
    })
    expect(mixedMs).toBeGreaterThanOrEqual(minutes * 60_000)
    print(commit, report)
    expect(report.gaps.slice(0, shownRepeats)).toEqual([])
    expect(report.repeats.slice(0, shownRepeats)).toEqual([])
  },
)

/**
 * Upgrades a group that has two workers of the earlier version at first, and puts it back. Returns for how
 * many milliseconds workers of both versions were in the group. This is the sum of the times that `exchange`
 * returned for the upgrade and for the way back.
 */
async function upgradeAndPutBack(group: ChangingGroup, program: string): Promise<number> {
  // During the upgrade, both versions are in the group for as many steps as workers are exchanged. The same
  // holds for the way back.
  const stepMs = (minutes * 60_000) / (2 * workers)
  for (let count = 2; count < workers; count++) await group.join(program)
  await passTime(stepMs)
  // This deployment starts a new worker before it ends an old one.
  let mixedMs = await exchange(stepMs, async () => {
    await group.join()
    await group.leave(0)
  })
  // This deployment ends a worker while it starts another.
  mixedMs += await exchange(stepMs, () => group.replace(0, program))
  group.refuseLosses()
  return mixedMs
}

/**
 * Exchanges one worker after the other. Returns the time from the end of the first exchange to the start of
 * the last one, in milliseconds. Workers of both versions are in the group for all of this time.
 */
async function exchange(stepMs: number, one: () => Promise<unknown>): Promise<number> {
  await one()
  const sinceMs = performance.now()
  // The first worker of the other version is the only one of its version for two steps.
  await passTime(2 * stepMs)
  for (let count = 1; count < workers - 1; count++) {
    await one()
    await passTime(stepMs)
  }
  const mixedMs = performance.now() - sinceMs
  await one()
  await passTime(stepMs)
  return mixedMs
}

function print(commit: string, { gaps, repeats, changes, deliveries, produced, startedMs }: Report): void {
  const at = (ms: number) => `${((ms - startedMs) / 1000).toFixed(2)} s`
  const lines = [
    `${produced} messages beside workers of ${commit.slice(0, 7)}: ${deliveries} deliveries, ${gaps.length} gaps, ${repeats.length} repeated`,
    ...changes.map(({ kind, worker, fromMs, toMs }) => `${at(fromMs)} to ${at(toMs)}: ${kind} ${worker}`),
    ...repeats
      .slice(0, shownRepeats)
      .map((repeat) =>
        repeat
          .map(
            ({ destination, messageId, worker, arrivedMs }) =>
              `${destination}/${messageId} ${worker} ${at(arrivedMs)}`,
          )
          .join(', '),
      ),
  ]
  process.stdout.write(`${lines.join('\n  ')}\n`)
}
