import { setTimeout as delay } from 'node:timers/promises'
import { isUnknownMember } from './protocol-error.ts'

/** How a member that starts takes itself, as it was before a crash, out of its group. */
export type Dismissal = {
  /** Whether a client id was this one's own before. */
  isOwnName: (clientId: string) => boolean
  /** How long after it died something that it had begun may still be under way. */
  settleMs: number
  sessionTimeoutMs: number
  /** Those that the group has now. */
  readMembers: () => Promise<readonly NamedMember[]>
  leave: (member: NamedMember) => Promise<void>
  /** There is one, and it isn't taken out yet. */
  onResting: () => void
  /** The member stops: nothing more is done. */
  isOver: () => boolean
  log: DismissalLog
}

export type NamedMember = { readonly clientId: string; readonly memberId: string }

type DismissalLog = Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>

const lookEveryMs = 500
/** A coordinator needs so much longer to find that a session is over. */
const sessionSlackMs = 2_000

/**
 * Resolves when the group has no member of its name, or none that can be dead: a session later it lives. One that was killed is a member until its session is over, and a join
 * before that has all others wait for it, with nothing delivered. Until then they go on, and only the partitions of the killed one
 * rest: so nothing is done in haste. It is taken out when no request of it can be at an endpoint any more, counted from the start of
 * this process. (The children of a primary that was killed are as quick, and leave by themselves.) Static membership (KIP-345) would do
 * the same; kafkajs has none. Never rejects.
 */
export async function dismissFormerSelf(dismissal: Dismissal): Promise<void> {
  const { isOwnName, settleMs, sessionTimeoutMs, readMembers, onResting, isOver, log } = dismissal
  const said = new Set<string>()
  const sayOnce = (level: keyof DismissalLog, fields: object, message: string): void => {
    if (!said.has(message)) log[level](fields, message)
    said.add(message)
  }
  while (!isOver()) {
    const upMs = process.uptime() * 1000
    const isLast = upMs > sessionTimeoutMs + sessionSlackMs
    try {
      const own = (await readMembers()).filter(({ clientId }) => isOwnName(clientId))
      if (own.length === 0 || isOver()) return
      if (isLast) {
        log.error({ members: own }, sharedInstance)
        return
      }
      onResting()
      sayOnce('info', { members: own }, resting)
      // Several of one name may be of before, or alive: a session later it is known.
      const isUnique = new Set(own.map(({ clientId }) => clientId)).size === own.length
      if (upMs >= settleMs && isUnique) {
        await Promise.all(own.map((member) => dismiss(member, dismissal)))
        return
      }
    } catch (error) {
      if (isOver()) return
      sayOnce('warn', { err: error }, unclear)
      if (isLast) return
    }
    await delay(lookEveryMs)
  }
}

const resting =
  'the group still has this worker as it was before: joining when nothing of that can be under way any more'
const unclear =
  'whether the group still has this worker as it was before can not be found out or mended now, trying again until a session is over'
/** For those who find a living member of their name. */
export const sharedInstance =
  'another living worker has the instance id of this one: give each its own kafka.instanceId, or what one has in flight is delivered twice when the other starts'

async function dismiss(member: NamedMember, { leave, log }: Dismissal): Promise<void> {
  try {
    await leave(member)
  } catch (error) {
    // Its session was over just now.
    if (isUnknownMember(error)) return
    throw error
  }
  log.info(member, 'took out of the group what had the name of this worker')
}
