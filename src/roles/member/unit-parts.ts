import type { AudienceUnits } from '../../audience/unit/units.ts'
import type { ValueCounter } from '../../audience/store/value-counter.ts'
import type { FirstSyncs } from '../../backfill/first-syncs.ts'
import type { Notices } from './open-notices.ts'
import type { Replays } from './open-replays.ts'
import type { WaitingQueues } from '../../waiting/queues.ts'
import type { ConsumerOptions } from '../../kafka/group/consumer.ts'

/** The parts of a member that work on the units that the member owns. */
export type UnitParts = {
  readonly waiting: Pick<WaitingQueues, 'prepare' | 'release'>
  readonly audiences: Pick<AudienceUnits, 'prepare' | 'release'>
  readonly firstSyncs: Pick<FirstSyncs, 'acquire' | 'release'>
  readonly counter: Pick<ValueCounter, 'acquire' | 'release'>
  readonly replays: Pick<Replays, 'acquire' | 'release'>
  readonly notices: Pick<Notices, 'acquire' | 'release'>
}

/**
 * Returns the functions that give a unit to the parts, and take it from them. `released` may be called while
 * `prepare` is still running. From then on, `prepare` gives the unit to no further part, because nothing
 * would take the unit from that part again.
 */
export function unitPorts({
  waiting,
  audiences,
  firstSyncs,
  counter,
  replays,
  notices,
}: UnitParts): Required<Pick<ConsumerOptions, 'prepare' | 'released'>> {
  const held = new Set<number>()
  return {
    async prepare(unit) {
      held.add(unit)
      // Both can take long, and new messages of the unit wait only for the queues.
      await Promise.all([waiting.prepare(unit), audiences.prepare(unit)])
      if (held.has(unit)) await firstSyncs.acquire(unit)
      if (!held.has(unit)) return
      counter.acquire(unit)
      replays.acquire(unit)
      notices.acquire(unit)
    },
    async released(unit) {
      held.delete(unit)
      notices.release(unit)
      await Promise.all([replays.release(unit), firstSyncs.release(unit), counter.release(unit)])
      await Promise.all([audiences.release(unit), waiting.release(unit)])
    },
  }
}
