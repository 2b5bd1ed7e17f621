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
import { Coordinator } from '../cluster/coordinator.ts'
import { errorCodes, protocolError } from '../wire/error-codes.ts'
import { isFatalToMember, memberCodeOf, typeOf } from './group-errors.ts'
import {
  type Answer,
  heartbeat,
  type Identity,
  type JoinAnswer,
  type JoinedMember,
  joinGroup,
  syncGroup,
} from '../wire/group-messages.ts'
import { LastHeard, type Moment, now } from './last-heard.ts'
import { leave } from './leave-group.ts'
import { BrokerTooOldError } from '../wire/wire-request.ts'

export type MembershipOptions = {
  readonly kafka: Kafka
  readonly groupId: string
  /** The id of a static member (KIP-345), which keeps its partitions if it restarts within its session. */
  readonly instanceId: string | undefined
  /** True if a static member leaves the group when it stops. Other members always leave. */
  readonly leaveOnStop: boolean
  readonly sessionTimeoutMs: number
  readonly topics: readonly string[]
  /** How many partitions of each topic are assigned to members. */
  readonly partitions: number
  /** The connection to the coordinator for heartbeats and for leaving. Joins use their own connection. */
  readonly coordinator: Coordinator
  /** Returns the claim of this member. Called at each join. */
  readonly claim: () => Omit<Claim, 'partitions'>
  readonly onAssigned: (assigned: Assigned) => void
  /** Called when the group has expelled this member. Its partitions may then belong to other members. */
  readonly onExpelled: () => void
  /**
   * Called with true when nothing was heard from the group for a session timeout, and with false when
   * something is heard again.
   */
  readonly onSilent: (isSilent: boolean) => void
  /** Called when this process can't become a member, however often it tries. */
  readonly onFatal: (error: Error) => void
  readonly log: Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>
}

export type Assigned = {
  /**
   * True at the first join, and at a join under a new member id. Before such a join, other members may have
   * owned the partitions.
   */
  readonly isAnew: boolean
  readonly partitions: Assignment
}

const protocol = 'sluice-units'
/** How long the group waits for its members to join again, in milliseconds. */
const rebalanceTimeoutMs = 60_000
const longestHeartbeatMs = 3_000
const beatAgainMs = 1_000
const firstPauseMs = 100
const longestPauseMs = 5_000
/**
 * After this number of refusals in a row, the answer to a join is assumed to be lost. A refusal of a
 * heartbeat or a commit counts only if its reason is that the group has a newer generation.
 */
const staleBeats = 3

type State = 'out' | 'joining' | 'stable' | 'left'

/**
 * The membership of this process in its group. This class joins, joins again whenever the group rebalances,
 * and sends a heartbeat every few seconds. It holds the member's id and generation. The callback `onAssigned`
 * starts and gives up partitions as an assignment requires. This class knows nothing about partition leaders.
 */
export class Membership {
  readonly #options: MembershipOptions
  /** A connection only for joins, because other requests would have to wait for the slow answer to a join. */
  readonly #joining: Coordinator
  #state: State = 'out'
  #memberId = ''
  /**
   * The identity from the last completed join. The group accepts commits with it until there is a newer
   * generation.
   */
  #identity: Identity | undefined
  #isAnew = true
  readonly #lastHeard = new LastHeard()
  #isSilent = false
  #staleBeats = 0
  #joinAgain = Promise.withResolvers<void>()
  #beatTimer: NodeJS.Timeout | undefined
  readonly #left = new AbortController()

  constructor(options: MembershipOptions) {
    this.#options = options
    this.#joining = new Coordinator(options.kafka, options.groupId, options.topics[0] ?? '')
  }

  /** The identity for commits. `undefined` before the first join, and after the group expelled the member. */
  get identity(): Identity | undefined {
    return this.#identity
  }

  /**
   * True while a join is under way or due. Meanwhile, no partition begins, because the claim in the request
   * for this join wouldn't list the partition.
   */
  get isJoining(): boolean {
    return this.#state !== 'stable'
  }

  /** True if the group knows this member, and has answered this member within the session timeout. */
  get isMember(): boolean {
    return this.#identity !== undefined && this.#state !== 'left' && !this.isSilent
  }

  /** True if nothing was heard for a session timeout. The group may then have expelled the member. */
  get isSilent(): boolean {
    return this.#lastHeard.agoMs > this.#options.sessionTimeoutMs
  }

  /**
   * Looks at the clock. Returns false once nothing was heard from the group for a session timeout, because
   * other members may then own this member's partitions. Returns true while this process isn't a member of
   * the group, because it then owns nothing. If the group has become silent or is heard again since the last
   * look, first calls `onSilent`.
   */
  checkInTouch(): boolean {
    this.#noticeSilence()
    return this.#identity === undefined || !this.#isSilent
  }

  /** The milliseconds since the coordinator's last answer to this member, even if a clock was set back. */
  get heardAgoMs(): number {
    return this.#lastHeard.agoMs
  }

  start(): void {
    void this.#live()
    this.#beatAfter(this.#heartbeatMs)
  }

  /** Notes that the coordinator has answered a request of this member that was sent at `asked`. */
  heard(as: Identity, asked: Moment): void {
    this.#judge(errorCodes.NONE, as, asked)
  }

  /** Notes that a request failed, perhaps because the member is unknown or has to join again. */
  refused(error: unknown, as: Identity, asked: Moment): void {
    const code = memberCodeOf(error)
    if (code !== undefined) this.#judge(code, as, asked)
  }

  /** Joins again. Called when the assignment is for other topics than this member subscribes to. */
  joinAgain(): void {
    this.#mustJoin()
  }

  /**
   * Stops joining, and leaves the group. A static member without `leaveOnStop` stays in the group, which
   * expects it back. Never rejects. A member that hasn't left is removed when its session is over.
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
        if (this.#identity !== undefined) this.#options.log.info({}, 'rejoining the group')
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
    // Another member has joined meanwhile, so all members join once more. This isn't a failure.
    if (typeOf(error) === 'REBALANCE_IN_PROGRESS') return
    const isForeign = typeOf(error) === 'INCONSISTENT_GROUP_PROTOCOL'
    if (isForeign) log.error({ err: error, groupId }, foreignProgram)
    else log.warn({ err: error }, 'joining the group failed, trying again')
  }

  /** Waits for a random time, so that members don't retry together. The time grows with each failure. */
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
    // The group first answers with a member id, and expects a second request with this id.
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

  /** Throws the error of an answer, if any. Gives up the identity if the group doesn't know the member. */
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
        const asked = now()
        const { errorCode } = await coordinator.ask(heartbeat(groupId, identity))
        this.#judge(errorCode, identity, asked)
      }
    } catch (error) {
      if (!this.#isOver) log.warn({ err: error }, 'the group coordinator could not be reached, trying again')
      nextMs = Math.min(nextMs, beatAgainMs)
    }
    this.#noticeSilence()
    this.#beatAfter(nextMs)
  }

  /**
   * Handles the answer to a request that was sent at `asked` with the identity `as`. Ignores the answer if
   * the identity has changed meanwhile.
   */
  #judge(errorCode: number, as: Identity, asked: Moment): void {
    if (this.#isOver || as !== this.#identity) return
    switch (errorCode) {
      case errorCodes.NONE:
        this.#staleBeats = 0
        this.#heard(asked)
        return
      case errorCodes.REBALANCE_IN_PROGRESS:
        this.#heard(asked)
        this.#mustJoin()
        return
      case errorCodes.ILLEGAL_GENERATION:
        this.#heard(asked)
        this.#mustJoin()
        // The answer to the join that is under way is late or was lost.
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

  #heard(at?: Moment): void {
    this.#lastHeard.heard(at)
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
