import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { assignPartitions } from './assignment.ts'
import {
  type Assignment,
  type Claim,
  readAssignment,
  readSubscription,
  writeAssignment,
  writeSubscription,
} from './claim.ts'
import { Coordinator } from './coordinator.ts'
import { errorCodes, protocolError } from './error-codes.ts'
import { isFatalToMember, memberCodeOf, typeOf } from './group-errors.ts'
import {
  type Answer,
  heartbeat,
  type Identity,
  type JoinAnswer,
  type JoinedMember,
  joinGroup,
  syncGroup,
} from './group-messages.ts'
import { leave } from './leave.ts'
import { BrokerTooOldError } from './wire.ts'

export type MembershipOptions = {
  readonly kafka: Kafka
  readonly groupId: string
  /**
   * Of a static member (KIP-345): it keeps its partitions through a restart that is shorter than its session.
   */
  readonly instanceId: string | undefined
  /** True if a static member leaves the group when it stops. Others always leave. */
  readonly leaveOnStop: boolean
  readonly sessionTimeoutMs: number
  readonly topics: readonly string[]
  /** How many of each topic there are to be given away. */
  readonly partitions: number
  /** For heartbeats and leaving, beside a join that may wait for long. */
  readonly coordinator: Coordinator
  /** Asked for at each join. */
  readonly claim: () => Omit<Claim, 'partitions'>
  readonly onAssigned: (assigned: Assigned) => void
  /** The group has gone on without this member, which joins anew: what it had may be with others. */
  readonly onExpelled: () => void
  /** For a whole session nothing was heard of the group, or something was heard again. */
  readonly onSilent: (isSilent: boolean) => void
  /** It can't be a member, whatever is tried. */
  readonly onFatal: (error: Error) => void
  readonly log: Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>
}

export type Assigned = {
  /** Under a new name, or for the first time: others may have had all that it had before. */
  readonly isAnew: boolean
  readonly partitions: Assignment
}

const protocol = 'sluice-units'
/** How long the others wait for a member to join again. */
const rebalanceTimeoutMs = 60_000
const longestHeartbeatMs = 3_000
const beatAgainMs = 1_000
const firstPauseMs = 100
const longestPauseMs = 5_000
/** So many heartbeats in a row that tell of a newer generation while a join waits: its answer was lost. */
const staleBeats = 3

type State = 'out' | 'joining' | 'stable' | 'left'

/**
 * This process as a member of its group: it joins, and again whenever the group does, and says every few
 * seconds that it lives. It owns the member's id and generation; what the assignment means for partitions is
 * the listener's. Leaders of partitions that move are none of its business.
 */
export class Membership {
  readonly #options: MembershipOptions
  /**
   * Of its own: a broker may keep the answer to a join until the session of a member that was killed is over.
   */
  readonly #joining: Coordinator
  #state: State = 'out'
  #memberId = ''
  /**
   * Of the last join that came to its end: the group takes commits under it for as long as there is no newer
   * generation.
   */
  #identity: Identity | undefined
  #isAnew = true
  #heardAtMs = 0
  #isSilent = false
  #staleBeats = 0
  #joinAgain = Promise.withResolvers<void>()
  #beatTimer: NodeJS.Timeout | undefined
  readonly #left = new AbortController()

  constructor(options: MembershipOptions) {
    this.#options = options
    this.#joining = new Coordinator(options.kafka, options.groupId, options.topics[0] ?? '')
  }

  /** What it commits as; `undefined` before the first join, and after it was expelled. */
  get identity(): Identity | undefined {
    return this.#identity
  }

  /** A join is under way, or due: nothing is begun meanwhile that its claim doesn't tell of. */
  get isJoining(): boolean {
    return this.#state !== 'stable'
  }

  /** The group knows this member, and has been heard of within the session. */
  get isMember(): boolean {
    return this.#identity !== undefined && this.#state !== 'left' && !this.isSilent
  }

  /** The group may have gone on without it. */
  get isSilent(): boolean {
    return Date.now() - this.#heardAtMs > this.#options.sessionTimeoutMs
  }

  /**
   * Looks at the clock: false once nothing was heard of the group for a session, so that others may have been
   * given what this member has. Tells `onSilent` first.
   */
  checkInTouch(): boolean {
    this.#noticeSilence()
    return this.#identity === undefined || !this.#isSilent
  }

  /** When the coordinator last answered this member, in epoch milliseconds; 0 before that. */
  get heardAtMs(): number {
    return this.#heardAtMs
  }

  start(): void {
    void this.#live()
    this.#beatAfter(this.#heartbeatMs)
  }

  /** The coordinator has answered a request of this member. */
  heard(as: Identity): void {
    this.#judge(errorCodes.NONE, as)
  }

  /**
   * A request of this member has failed, perhaps since the group doesn't know it any more, or is joined anew.
   */
  refused(error: unknown, as: Identity): void {
    const code = memberCodeOf(error)
    if (code !== undefined) this.#judge(code, as)
  }

  /** What was assigned is of another subscription than what this member has now. */
  joinAgain(): void {
    this.#mustJoin()
  }

  /**
   * Joins no more. Leaves the group, unless this is a static member without `leaveOnStop`: the group expects
   * that one back until its session is over. Never rejects: the group forgets a member that can't leave when
   * the session is over.
   */
  async stop(): Promise<void> {
    const { coordinator, groupId, instanceId, leaveOnStop, log } = this.#options
    const memberId = this.#memberId
    this.#end()
    if ((instanceId === undefined || leaveOnStop) && memberId !== '')
      await leave(coordinator, groupId, { member: { memberId, instanceId }, log })
    this.#joining.close()
  }

  #end(): void {
    this.#state = 'left'
    clearTimeout(this.#beatTimer)
    this.#left.abort()
    this.#joinAgain.resolve()
  }

  get #isOver(): boolean {
    return this.#state === 'left'
  }

  async #live(): Promise<void> {
    for (let failures = 0; !this.#isOver;) {
      try {
        this.#state = 'joining'
        this.#joinAgain = Promise.withResolvers<void>()
        if (this.#identity !== undefined) this.#options.log.info({}, 'joining the group again')
        await this.#join()
        failures = 0
        // The connection isn't needed until the next join.
        this.#joining.close()
        await this.#joinAgain.promise
      } catch (error) {
        if (this.#isOver) return
        if (this.#isFatal(error)) {
          this.#fail(error)
          return
        }
        this.#tell(error)
        await this.#pause(failures++)
      }
    }
  }

  #tell(error: unknown): void {
    const { log, groupId } = this.#options
    // Another one has joined meanwhile, and all join once more.
    if (typeOf(error) === 'REBALANCE_IN_PROGRESS') return
    const isForeign = typeOf(error) === 'INCONSISTENT_GROUP_PROTOCOL'
    if (isForeign) log.error({ err: error, groupId }, foreignProgram)
    else log.warn({ err: error }, 'joining the group failed, trying again')
  }

  /** Grows with the failures, and is never the same for all members. */
  async #pause(failures: number): Promise<void> {
    const longestMs = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(failures, 10))
    const pauseMs = longestMs * (0.5 + Math.random() / 2)
    await delay(pauseMs, undefined, { signal: this.#left.signal }).catch(() => undefined)
  }

  async #join(): Promise<void> {
    const { memberId, generationId, leaderId, members } = await this.#askToJoin()
    if (this.#isOver) return
    this.#heard()
    const { groupId, instanceId } = this.#options
    const identity: Identity = { memberId, generationId, instanceId }
    const assignments = leaderId === memberId ? this.#assign(members) : new Map<string, Buffer>()
    const synced = await this.#joining.ask(syncGroup(groupId, identity, assignments))
    if (this.#isOver) return
    this.#refuse(synced)
    this.#identity = identity
    this.#staleBeats = 0
    this.#state = 'stable'
    this.#heard()
    const isAnew = this.#isAnew
    this.#isAnew = false
    this.#options.onAssigned({ isAnew, partitions: readAssignment(synced.assignment) })
  }

  async #askToJoin(): Promise<JoinAnswer> {
    const { groupId, instanceId, sessionTimeoutMs, topics, partitions, claim } = this.#options
    const metadata = writeSubscription({ topics, claim: { ...claim(), partitions } })
    const ask = (): Promise<JoinAnswer> =>
      this.#joining.ask(
        joinGroup({
          groupId,
          memberId: this.#memberId,
          instanceId,
          sessionTimeoutMs,
          rebalanceTimeoutMs,
          protocol,
          metadata,
        }),
      )
    let joined = await ask()
    // The group wants to know a member before it waits for it.
    if (joined.errorCode === errorCodes.MEMBER_ID_REQUIRED) {
      this.#memberId = joined.memberId
      if (!this.#isOver) joined = await ask()
    }
    this.#refuse(joined)
    if (!this.#isOver) this.#memberId = joined.memberId
    return joined
  }

  #assign(members: readonly JoinedMember[]): ReadonlyMap<string, Buffer> {
    const subscribers = members.map(({ memberId, metadata }) => ({ memberId, ...readSubscription(metadata) }))
    const assignments = assignPartitions(subscribers, this.#options.partitions)
    return new Map([...assignments].map(([memberId, assignment]) => [memberId, writeAssignment(assignment)]))
  }

  /** Throws what the group has against it. */
  #refuse({ errorCode }: Answer): void {
    if (errorCode === errorCodes.NONE) return
    if (errorCode === errorCodes.UNKNOWN_MEMBER_ID) this.#expelled()
    throw protocolError(errorCode)
  }

  #expelled(): void {
    this.#memberId = ''
    this.#isAnew = true
    if (this.#identity === undefined) return
    this.#identity = undefined
    this.#options.onExpelled()
  }

  get #heartbeatMs(): number {
    return Math.min(longestHeartbeatMs, Math.floor(this.#options.sessionTimeoutMs / 4))
  }

  #beatAfter(ms: number): void {
    if (this.#isOver) return
    this.#beatTimer = setTimeout(() => void this.#beat(), ms)
  }

  async #beat(): Promise<void> {
    const { coordinator, groupId, log } = this.#options
    const identity = this.#identity
    let nextMs = this.#heartbeatMs
    this.#noticeSilence()
    try {
      if (identity !== undefined) {
        const { errorCode } = await coordinator.ask(heartbeat(groupId, identity))
        this.#judge(errorCode, identity)
      }
    } catch (error) {
      if (!this.#isOver) log.warn({ err: error }, 'the group coordinator could not be reached, trying again')
      nextMs = Math.min(nextMs, beatAgainMs)
    }
    this.#noticeSilence()
    this.#beatAfter(nextMs)
  }

  /** What the coordinator says of a member that asked as `as`; what it says of an earlier one is no news. */
  #judge(errorCode: number, as: Identity): void {
    if (this.#isOver || as !== this.#identity) return
    switch (errorCode) {
      case errorCodes.NONE:
        this.#staleBeats = 0
        this.#heard()
        return
      case errorCodes.REBALANCE_IN_PROGRESS:
        this.#heard()
        this.#mustJoin()
        return
      case errorCodes.ILLEGAL_GENERATION:
        this.#heard()
        this.#mustJoin()
        // The answer to the join that is under way is late, or lost on its way.
        if (++this.#staleBeats >= staleBeats) this.#joinAnew()
        return
      case errorCodes.UNKNOWN_MEMBER_ID:
        this.#expelled()
        this.#mustJoin()
        return
      default:
        if (this.#isFatal(protocolError(errorCode))) this.#fail(protocolError(errorCode))
        else throw protocolError(errorCode)
    }
  }

  #mustJoin(): void {
    if (this.#state !== 'stable') return
    this.#state = 'joining'
    this.#joinAgain.resolve()
  }

  #joinAnew(): void {
    this.#staleBeats = 0
    this.#joining.close()
  }

  #heard(): void {
    this.#heardAtMs = Date.now()
    this.#noticeSilence()
  }

  #noticeSilence(): void {
    const { isSilent } = this
    if (isSilent === this.#isSilent || this.#identity === undefined) return
    this.#isSilent = isSilent
    this.#options.onSilent(isSilent)
  }

  #isFatal(error: unknown): boolean {
    return error instanceof BrokerTooOldError || isFatalToMember(error)
  }

  #fail(error: unknown): void {
    const { groupId, instanceId, onFatal } = this.#options
    this.#end()
    this.#joining.close()
    if (typeOf(error) === 'FENCED_INSTANCE_ID') {
      onFatal(
        new Error(`${sharedInstance} (kafka.instanceId ${instanceId}, group ${groupId})`, { cause: error }),
      )
    } else onFatal(error instanceof Error ? error : new Error(String(error)))
  }
}

const sharedInstance =
  'another living worker has joined the group with the instance id of this one: give each its own kafka.instanceId'

const foreignProgram =
  'another program is in the consumer group of this worker, which can not join: give each its own kafka.groupId; trying again'
