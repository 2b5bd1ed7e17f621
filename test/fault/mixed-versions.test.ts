import { setTimeout as passTime } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { takeEarlierVersion } from '../support/earlier-version.ts'
import type { ChangingGroup } from '../support/changing-group.ts'
import { type Report, underLoad } from '../support/group-load.ts'

/** How long workers of two versions are in one group at least, for each of the earlier ones. */
const minutes = Number(process.env['MIXED_VERSIONS_MINUTES'] ?? 5)
const workers = 3
const shownRepeats = 20

/** Of those that a group may be upgraded from, and put back to, while it works (docs/kafka.md). */
const earlier = [
  ['whose group member is that of kafkajs', 'f9da74d5b3de70f83ecfccc5d774b6310f8a5969'],
  [
    'whose commits do not say of which epoch the last settled record is',
    '8eb382fd79b3a93f0cb30a9969718fb7fd61c696',
  ],
  // The newest one at the time: what most of those have who upgrade.
  ['of the day before static members could leave', 'f769ee079a0443a6e835082dbfc978726e958b74'],
] as const

test.each(earlier)(
  'workers of a version %s are upgraded one by one under load, and put back: nothing is lost, and nothing is repeated',
  { timeout: 2 * minutes * 60_000 + 300_000 },
  async (_what, commit) => {
    let mixedMs = 0
    const before = await takeEarlierVersion(commit)
    onTestFinished(() => before.remove())
    const report = await underLoad({
      program: before.program,
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
 * Two workers of the earlier version are there at first. Gives for how long both versions were in the group: from the first worker of
 * the other version until the last one of this version has gone, twice.
 */
async function upgradeAndPutBack(group: ChangingGroup, program: string): Promise<number> {
  // Both times both versions are there for as many steps as workers are exchanged.
  const stepMs = (minutes * 60_000) / (2 * workers)
  for (let count = 2; count < workers; count++) await group.join(program)
  await passTime(stepMs)
  // As a deployment does that starts one before it ends another.
  let mixedMs = await exchange(stepMs, async () => {
    await group.join()
    await group.leave(0)
  })
  // As one that ends one while it starts another.
  mixedMs += await exchange(stepMs, () => group.replace(0, program))
  group.refuseLosses()
  return mixedMs
}

/** Exchanges one worker after the other. Gives for how long there were those of both versions. */
async function exchange(stepMs: number, one: () => Promise<unknown>): Promise<number> {
  await one()
  const sinceMs = performance.now()
  // The first stays by itself for longer.
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
