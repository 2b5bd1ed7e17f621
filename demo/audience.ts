import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Producer } from 'kafkajs'
import { bigSpenders, spaceId, times } from './script.ts'
import { runSluice, type Settings } from './sluice.ts'

/**
 * An audience whose members are computed outside of Sluice. Sluice tells the destination `campaigns` which
 * users enter the audience and which users leave it.
 */
export type AudienceUpstream = {
  /**
   * The number of Identifies that the steps done so far must cause. A step causes one Identify for each user
   * whose membership it changes.
   */
  readonly due: number
  /** One sentence about the last step. It is empty before the first step. */
  readonly story: string
  /**
   * Does all steps in order. A step waits for its time, and until `arrived` returns at least `due`. Returns
   * without the remaining steps if a step still waits at `times.deadlineMs`.
   */
  play(options: { elapsedMs: () => number; arrived: () => number; signal: AbortSignal }): Promise<void>
}

type Step = { readonly atMs: number } & (
  | { readonly way: 'sync'; readonly members: readonly string[] }
  | { readonly way: 'changes'; readonly changes: readonly (readonly [userId: string, member: boolean])[] }
)

const usersFrom = (first: number, last: number): string[] =>
  Array.from({ length: last - first + 1 }, (_, index) => `user-${first + index}`)

const created = usersFrom(1, 30)
const changes = [
  ...usersFrom(31, 33).map((userId) => [userId, true] as const),
  ...usersFrom(1, 2).map((userId) => [userId, false] as const),
  // These users are members already, so these changes must cause no Identify.
  ...usersFrom(3, 7).map((userId) => [userId, true] as const),
]
/** The members of the second sync: three members from before have left, and two new users have entered. */
const synced = [...usersFrom(5, 30), ...usersFrom(32, 35)]

const steps: readonly Step[] = [
  { atMs: times.audienceCreatedMs, way: 'sync', members: created },
  { atMs: times.audienceChangedMs, way: 'changes', changes },
  { atMs: times.audienceSyncedMs, way: 'sync', members: synced },
]

/**
 * Returns one map for each step, in the order of the steps. The map has the users who must get an Identify
 * because of the step, each with the membership that the Identify must report.
 */
export function expectedOfAudience(): readonly ReadonlyMap<string, boolean>[] {
  const members = new Set<string>()
  return steps.map((step) => {
    const wanted = new Map(step.way === 'changes' ? step.changes : wholeOf(step.members, members))
    const different = new Map([...wanted].filter(([userId, member]) => members.has(userId) !== member))
    for (const [userId, member] of different) {
      if (member) members.add(userId)
      else members.delete(userId)
    }
    return different
  })
}

/**
 * Returns the memberships that a sync reports: its members are in the audience, and all earlier members that
 * the sync doesn't list have left.
 */
function wholeOf(members: readonly string[], before: ReadonlySet<string>): [string, boolean][] {
  return [...[...before].map((userId): [string, boolean] => [userId, false]), ...members.map(isMember)]
}

function isMember(userId: string): [string, boolean] {
  return [userId, true]
}

export function createAudience(options: {
  producer: Producer
  topic: string
  settings: Settings
  folder: string
}): AudienceUpstream {
  const { producer, topic, settings, folder } = options
  let due = 0
  let story = ''

  /** Writes all members to a CSV file, and runs `sluice audience sync` with this file. */
  async function sync(members: readonly string[], signal: AbortSignal): Promise<void> {
    const file = join(folder, 'members.csv')
    await writeFile(file, ['user_id', ...members, ''].join('\n'))
    const named = ['--space', spaceId, '--audience', bigSpenders.id, '--name', bigSpenders.name]
    await runSluice(['audience', 'sync', file, ...named], settings, signal)
  }

  async function change(changed: readonly (readonly [string, boolean])[]): Promise<void> {
    const messages = changed.map(([userId, member]) => ({
      key: userId,
      value: JSON.stringify({
        type: 'membership',
        audienceId: bigSpenders.id,
        audienceName: bigSpenders.name,
        userId,
        member,
        changedAt: new Date().toISOString(),
      }),
      headers: { 'source-id': spaceId },
    }))
    await producer.send({ topic, messages, acks: -1 })
  }

  return {
    get due() {
      return due
    },
    get story() {
      return story
    },
    async play({ elapsedMs, arrived, signal }) {
      for (const [index, step] of steps.entries()) {
        while (elapsedMs() < step.atMs || arrived() < due) {
          if (elapsedMs() > times.deadlineMs) return
          await sleep(100, undefined, { signal })
        }
        const different = expectedOfAudience()[index]?.size ?? 0
        if (step.way === 'sync') await sync(step.members, signal)
        else await change(step.changes)
        due += different
        story =
          step.way === 'sync'
            ? `sluice audience sync of ${step.members.length} members: campaigns hears of ${different} who differ.`
            : `${step.changes.length} changes of the audience: campaigns hears of ${different}, the others are known.`
      }
    },
  }
}
