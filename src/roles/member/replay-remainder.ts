import type { HealthBoard } from '../../health/health-board.ts'
import type { GroupLagReader } from '../../kafka/other-groups/group-lag.ts'
import type { Remainder, Written } from '../../replay/job-run.ts'
import type { HealthReading } from '../operations/health-reading.ts'

export type RemainderOptions = {
  readonly lag: Pick<GroupLagReader, 'read' | 'endsOf' | 'behind'>
  /** The name of the topic `replays`. */
  readonly topic: string
  readonly health: HealthReading
  readonly catalog: () => { readonly destinations: ReadonlyMap<string, { readonly state: string }> }
  readonly now: () => number
}

/**
 * Returns how many records that replays have written are not settled: those of the topic `replays`, and those
 * that wait in the queue of `destinationId`. Without a destination, those that wait for any destination that
 * is on. What can't be found out counts as 0, so only the limits of the lanes then slow the replays.
 */
export async function replayBacklog(
  options: RemainderOptions,
  destinationId: string | undefined,
): Promise<number> {
  const { lag, topic, health, now } = options
  const behind = lag.read([topic]).then(
    (read) => read.lag.get(topic) ?? 0,
    () => 0,
  )
  const board = await health.read()
  const ids = destinationId === undefined ? thoseOn(options, board) : [destinationId]
  return (await behind) + replayedOf(board, ids, now())
}

/**
 * Follows the records that a replay has written. First they have to leave the topic `replays`: each then has
 * been delivered, has failed, or waits in the queue of its destination. After that, the owners of all units
 * have to say that no record of a replay waits there. If it isn't known for which destinations the records
 * are, those that aren't on don't count, because their messages may wait for weeks.
 */
export function replayRemainder(options: RemainderOptions, written: Written): Remainder {
  const { lag, topic, health, now } = options
  let ends: ReadonlyMap<number, number> | undefined
  /** The end of what was known when the records had left the topic `replays`. */
  let leftAt: number | undefined
  /** What was in the topic at an earlier look, and the end of what was known then. */
  let look: { readonly behind: number; readonly position: number } | undefined
  let atMost = written.records
  return {
    async left() {
      ends ??= await lag.endsOf(topic)
      const behind = leftAt === undefined ? await lag.behind(topic, ends) : 0
      const board = await health.read()
      // Without the topic, nobody knows what waits in the queues.
      if (board === undefined) return behind
      const inQueues = replayedOf(board, written.destinationIds ?? thoseOn(options, board), now())
      // What had left the topic at the look is in what the owners have said since, unless it is settled. What
      // they said before may lack it.
      if (look !== undefined && board.isCompleteSince(look.position, now())) {
        atMost = Math.min(atMost, look.behind + inQueues)
        look = undefined
      }
      if (behind > 0) {
        look ??= { behind, position: board.position }
        return atMost
      }
      leftAt ??= board.position
      if (!board.isCompleteSince(leftAt, now())) return atMost
      return Math.min(written.records, inQueues)
    },
  }
}

function thoseOn({ catalog }: RemainderOptions, board: HealthBoard | undefined): readonly string[] {
  const { destinations } = catalog()
  return [...(board?.destinations() ?? [])].filter((id) => destinations.get(id)?.state === 'on')
}

function replayedOf(board: HealthBoard | undefined, ids: Iterable<string>, nowMs: number): number {
  let sum = 0
  for (const id of ids) sum += board?.of(id, nowMs).replayed ?? 0
  return sum
}
