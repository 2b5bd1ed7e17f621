import { setTimeout as delay } from 'node:timers/promises'
import { isUnknownMember } from './protocol-error.ts'

/** How a member that starts takes itself, as it was before a crash, out of its group. */
export type Dismissal = {
  /** The client id that no other program has, and that this one had before. */
  name: string
  /** How long after it died something that it had begun may still be under way. */
  settleMs: number
  /** Those that the group has now. */
  readMembers: () => Promise<readonly GroupMember[]>
  leave: (memberId: string) => Promise<void>
  /** The member stops: nothing more is done. */
  isOver: () => boolean
  log: { info(fields: object, message: string): void; warn(fields: object, message: string): void }
}

type GroupMember = { readonly clientId: string; readonly memberId: string }

const lookEveryMs = 500

/**
 * Resolves when the group has no member of this name. One that was killed is a member until its session is over, and a join
 * before that has all others wait for it, with nothing delivered: whoever joins is to see to it first. So long as requests of that
 * one may still be at an endpoint, the others go on, and its partitions rest. Static membership (KIP-345) would do the same; kafkajs
 * has none. Throws when the group can't be asked.
 */
export async function dismissFormerSelf(dismissal: Dismissal): Promise<void> {
  const { name, settleMs, readMembers, isOver, log } = dismissal
  let isTold = false
  while (!isOver()) {
    const [former, ...more] = (await readMembers()).filter(({ clientId }) => clientId === name)
    if (former === undefined || isOver()) return
    if (more.length > 0) {
      log.warn(
        { name, members: more.length + 1 },
        'several members of the group have the name of this worker, and stay in it: kafka.instanceId must be another for each worker',
      )
      return
    }
    // It died before this process was there.
    const restMs = settleMs - process.uptime() * 1000
    if (restMs <= 0) return dismiss(former, dismissal)
    if (!isTold) {
      log.info(
        { name, waitMs: Math.round(restMs) },
        'this worker is still in the group from before: joining when nothing of that can be under way any more',
      )
      isTold = true
    }
    await delay(Math.min(lookEveryMs, restMs))
  }
}

async function dismiss({ memberId }: GroupMember, { name, leave, log }: Dismissal): Promise<void> {
  try {
    await leave(memberId)
  } catch (error) {
    // Its session was over just now.
    if (!isUnknownMember(error)) throw error
  }
  log.info({ name, memberId }, 'took out of the group what this worker was before it was started again')
}
