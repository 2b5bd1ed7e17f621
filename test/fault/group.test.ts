import { setTimeout as passTime } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Change, ChangeKind, ChangingGroup } from '../support/changing-group.ts'
import type { Delivery } from '../support/delivery-book.ts'
import {
  commitIntervalMs,
  destinations,
  perSecond,
  type Report,
  sessionTimeoutMs,
  underLoad,
} from '../support/group-load.ts'
import { Random } from '../support/random.ts'
import { faultsOf, isFault } from '../support/repeated-deliveries.ts'

/**
 * The length in minutes of the test in which workers are also killed and frozen. The test with only planned
 * changes takes half of this time.
 */
const minutes = Number(process.env['SLUICE_TEST_GROUP_MINUTES'] ?? 10)
/** The seed of the schedules. The same seed makes the same choices, though not at the same moments. */
const seed = Number(process.env['SLUICE_TEST_GROUP_SEED'] ?? 1)
/** True if the report also shows what the workers logged about the group. */
const isLogShown = process.env['SLUICE_TEST_GROUP_LOG'] === 'true'
const timeoutMs = minutes * 60_000 + 300_000

test(
  'while workers join, leave and are replaced under load, nothing is lost and nothing is repeated',
  { timeout: timeoutMs },
  async () => {
    const { gaps, repeats, changes } = await underSchedule({
      forMs: minutes * 30_000,
      choose: (group) => {
        if (group.awake === 1) return ['join']
        return group.size < 3 ? ['join', 'leave', 'replace'] : ['leave', 'replace']
      },
    })
    expect(kindsOf(changes)).toEqual(new Set(['join', 'leave']))
    expect(gaps.slice(0, shownRepeats)).toEqual([])
    expect(repeats.slice(0, shownRepeats)).toEqual([])
  },
)

test(
  'while workers are also killed, and stopped for longer than their session, nothing is lost, and only what they had begun is repeated',
  { timeout: timeoutMs },
  async () => {
    const { gaps, repeats, changes, deliveries } = await underSchedule({
      forMs: minutes * 60_000,
      choose: (group) => {
        const joins: ChangeKind[] = group.size < 3 ? ['join'] : []
        return group.awake < 2 ? joins : [...joins, 'leave', 'replace', 'kill', 'freeze']
      },
    })
    const faults = changes.filter(isFault)
    expect(kindsOf(changes)).toEqual(new Set(['join', 'leave', 'kill', 'freeze']))
    expect(gaps.slice(0, shownRepeats)).toEqual([])
    const unexplained = repeats.filter((repeat) => faultsOf(repeat, faults).length === 0)
    expect(unexplained.slice(0, shownRepeats)).toEqual([])
    expect(repeats.length).toBeLessThan(faults.length * mostRepeatsPerFault)
    expect(repeats.length / deliveries).toBeLessThan(mostRepeated)
  },
)

/**
 * The most repeats per fault. This is 1.5 times the number of deliveries that a worker would settle in one
 * commit interval and have in flight if it were alone.
 */
const mostRepeatsPerFault = 1.5 * perSecond * destinations.length * (commitIntervalMs / 1000 + 0.2)
const mostRepeated = 0.03
/** The most repeats or gaps that the text of a failure shows. */
const shownRepeats = 20

/** Changes the group by a seeded schedule. */
async function underSchedule({
  forMs,
  choose,
}: {
  forMs: number
  /**
   * Returns the kinds of changes that are allowed now. There is at least one, unless the group has to wait.
   */
  choose: (group: ChangingGroup) => readonly ChangeKind[]
}): Promise<Report> {
  const report = await underLoad({
    change: (group, startedMs) => change(group, { untilMs: startedMs + forMs, choose }),
  })
  print(report)
  return report
}

async function change(
  group: ChangingGroup,
  { untilMs, choose }: { untilMs: number; choose: (group: ChangingGroup) => readonly ChangeKind[] },
): Promise<void> {
  const random = new Random(seed)
  const times = new Map<ChangeKind, number>()
  while (Date.now() < untilMs) {
    // Leaves the group alone for a random time. Sometimes the group has settled by then, and sometimes not.
    await passTime(500 + random.below(8_000))
    const kind = rarest(choose(group), times, random)
    const pick = random.below(6)
    const frozenMs = sessionTimeoutMs + 2_000 + random.below(4_000)
    if (kind !== undefined) await apply(group, kind, pick, frozenMs)
    group.refuseLosses()
  }
}

/**
 * Returns a random kind among those that were chosen least often. So each kind has its turn in a short run
 * too.
 */
function rarest(
  kinds: readonly ChangeKind[],
  times: Map<ChangeKind, number>,
  random: Random,
): ChangeKind | undefined {
  const least = Math.min(...kinds.map((kind) => times.get(kind) ?? 0))
  const rare = kinds.filter((kind) => (times.get(kind) ?? 0) === least)
  if (rare.length === 0) return undefined
  const kind = random.pick(rare)
  times.set(kind, least + 1)
  return kind
}

async function apply(
  group: ChangingGroup,
  kind: ChangeKind,
  pick: number,
  frozenMs: number,
): Promise<unknown> {
  switch (kind) {
    case 'join':
      return group.join()
    case 'leave':
      return group.leave(pick)
    case 'replace':
      return group.replace(pick)
    case 'kill':
      return group.kill(pick)
    case 'freeze':
      return group.freeze(pick, frozenMs)
    case 'pause':
      return group.pause(pick, frozenMs)
  }
}

function kindsOf(changes: readonly Change[]): Set<Change['kind']> {
  return new Set(changes.map(({ kind }) => kind))
}

function print({ gaps, repeats, changes, deliveries, produced, startedMs, log }: Report): void {
  const at = (ms: number) => `${((ms - startedMs) / 1000).toFixed(2)} s`
  const describeChange = (one: Change): string => {
    const across = repeats.filter((repeat) => faultsOf(repeat, [one]).length > 0).length
    return `${at(one.fromMs)} to ${at(one.toMs)}: ${one.kind} ${one.worker}${isFault(one) ? `, ${across} repeated` : ''}`
  }
  const describeDelivery = ({ worker, arrivedMs, isAnswered }: Delivery): string =>
    `${worker} at ${at(arrivedMs)}${isAnswered ? '' : ' (not answered)'}`
  const lines = [
    `${produced} messages for ${destinations.length} destinations, seed ${seed}: ${deliveries} deliveries, ` +
      `${gaps.length} gaps, ${repeats.length} repeated`,
    ...changes.map(describeChange),
    ...repeats
      .slice(0, shownRepeats)
      .map(
        (repeat) =>
          `${repeat[0]?.destination}/${repeat[0]?.messageId}: ${repeat.map(describeDelivery).join(', ')}`,
      ),
    ...(isLogShown ? log.map(({ ms, text }) => `${at(ms)} ${text}`) : []),
  ]
  process.stdout.write(`${lines.join('\n  ')}\n`)
}
