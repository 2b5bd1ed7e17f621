import { foreignTopics } from './assignment.ts'
import { type Claim, readSubscription } from './claim.ts'
import type { Coordinator } from '../cluster/coordinator.ts'
import { errorCodes, protocolError } from '../wire/error-codes.ts'
import { type Described, type DescribedMember, describeGroup, leaveGroup } from '../wire/group-messages.ts'

export type GroupWatchOptions = {
  readonly coordinator: Coordinator
  readonly groupId: string
  readonly topics: readonly string[]
  readonly ownMemberId: () => string | undefined
  /**
   * Returns true if an instance id belonged to a former process of this worker. The former process no longer
   * exists, because the worker now runs fewer processes.
   */
  readonly isFormerProcess: ((instanceId: string) => boolean) | undefined
  /**
   * Requests of an earlier process may still be in flight for this time after the start of this process, in
   * milliseconds.
   */
  readonly settleMs: number
  readonly log: Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>
}

const againMs = 60_000
const afterTroubleMs = 5_000

/** Reports which other members the group had at this member's last join. */
export class GroupWatch {
  readonly #options: GroupWatchOptions
  #look: Promise<Described> | undefined
  #foreign: readonly string[] = []
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(options: GroupWatchOptions) {
    this.#options = options
  }

  /**
   * The topics of other installations that share the group by mistake, sorted. Empty if there is no such
   * installation.
   */
  get foreign(): readonly string[] {
    return this.#foreign
  }

  /**
   * Reads the members of the group again. Called when the group has a new generation, and when the members
   * have to be looked at once more.
   */
  joined(): void {
    this.#look = undefined
    void this.#lookAround()
  }

  /**
   * Returns the claims of the other members at the last join. Returns `undefined` while the group can't
   * report claims because it is joining again.
   */
  async claims(): Promise<readonly Claim[] | undefined> {
    const { state, members } = await this.#described()
    if (state !== stable) {
      this.#look = undefined
      return undefined
    }
    return this.#others(members).map(({ metadata }) => readSubscription(metadata).claim)
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  #others(members: readonly DescribedMember[]): readonly DescribedMember[] {
    const own = this.#options.ownMemberId()
    return members.filter(({ memberId }) => memberId !== own)
  }

  /**
   * Returns the description of the group. Asks the coordinator at the first call, and again after `#look` was
   * cleared.
   */
  async #described(): Promise<Described> {
    this.#look ??= this.#describe()
    const look = this.#look
    try {
      return await look
    } catch (error) {
      if (this.#look === look) this.#look = undefined
      throw error
    }
  }

  async #describe(): Promise<Described> {
    const { coordinator, groupId } = this.#options
    const described = await coordinator.ask(describeGroup(groupId))
    if (described.errorCode !== errorCodes.NONE) throw protocolError(described.errorCode)
    return described
  }

  async #lookAround(): Promise<void> {
    clearTimeout(this.#timer)
    let nextMs: number | undefined
    try {
      const { state, members } = await this.#described()
      if (state === stable) {
        const left = await this.#dismiss(members)
        nextMs = this.#tellForeign(members) ? againMs : undefined
        if (left > 0) nextMs = afterTroubleMs
      } else nextMs = afterTroubleMs
    } catch (error) {
      if (!this.#isStopped)
        this.#options.log.warn({ err: error }, 'the members of the group could not be read, trying again')
      nextMs = afterTroubleMs
    }
    if (this.#isStopped || nextMs === undefined) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.joined(), nextMs)
  }

  #tellForeign(members: readonly DescribedMember[]): boolean {
    const { groupId, topics, log } = this.#options
    this.#foreign = foreignTopics(
      members.map(({ metadata }) => readSubscription(metadata)),
      topics,
    )
    if (this.#foreign.length === 0) return false
    log.error({ groupId, topics: this.#foreign }, foreignSubscription)
    return true
  }

  /**
   * Removes former processes of this worker from the group, once none of their requests can be in flight.
   * Returns how many former processes still have to be removed later.
   */
  async #dismiss(members: readonly DescribedMember[]): Promise<number> {
    const { coordinator, groupId, isFormerProcess, settleMs, log } = this.#options
    const former = members.flatMap(({ instanceId }) =>
      instanceId !== null && isFormerProcess?.(instanceId) === true ? [instanceId] : [],
    )
    if (process.uptime() * 1000 < settleMs) return former.length
    for (const instanceId of former) {
      const { errorCode } = await coordinator.ask(leaveGroup(groupId, { memberId: '', instanceId }))
      if (errorCode !== errorCodes.NONE && errorCode !== errorCodes.UNKNOWN_MEMBER_ID)
        throw protocolError(errorCode)
      log.info({ instanceId }, 'removed a former process of this worker from the group')
    }
    return 0
  }
}

const stable = 'Stable'

const foreignSubscription =
  'workers of another installation are in this consumer group: give each installation its own kafka.groupId; until then each change of one delays the partitions of the other'
