import { setTimeout as passTime } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { takeEarlierVersion } from '../support/earlier-version.ts'
import type { ChangingGroup } from '../support/changing-group.ts'
import { type Report, underLoad } from '../support/group-load.ts'

/** How long workers of two versions are in one group, for each of the earlier ones. */
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
] as const

test.each(earlier)(
  'workers of a version %s are upgraded one by one under load, and put back: nothing is lost, and nothing is repeated',
  { timeout: minutes * 60_000 + 300_000 },
  async (_what, commit) => {
    const before = await takeEarlierVersion(commit)
    onTestFinished(() => before.remove())
    const report = await underLoad({
      program: before.program,
      change: (group) => upgradeAndPutBack(group, before.program),
    })
    print(commit, report)
    expect(report.gaps.slice(0, shownRepeats)).toEqual([])
    expect(report.repeats.slice(0, shownRepeats)).toEqual([])
  },
)

/** Two workers are there. For half of the time both versions are. */
async function upgradeAndPutBack(group: ChangingGroup, program: string): Promise<void> {
  const stepMs = (minutes * 60_000) / (2 * workers + 4)
  for (let count = 2; count < workers; count++) await group.join(program)
  await passTime(stepMs)
  // As a deployment does that starts one before it ends another.
  for (let count = 0; count < workers; count++) {
    await group.join()
    await group.leave(0)
    await passTime(count === 0 ? 2 * stepMs : stepMs)
  }
  // As one that ends one while it starts another.
  for (let count = 0; count < workers; count++) {
    await group.replace(0, program)
    await passTime(count === 0 ? 2 * stepMs : stepMs)
  }
  group.refuseLosses()
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
