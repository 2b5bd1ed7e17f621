import { setImmediate as nextTurn } from 'node:timers/promises'
import { maxRememberedOffsets } from '../../../../src/kafka/wire/commit-metadata.ts'
import { Partition, type Standing } from '../../../../src/kafka/partitions/partition.ts'
import type { StoredCommit } from '../../../../src/kafka/wire/stored-commit.ts'
import { takeOver } from '../../../../src/kafka/group/takeover.ts'

/** The fate of a commit that a member of the present generation sends. */
export type Fate = 'taken' | 'answer lost' | 'refused'

/** The content that a commit should have, by the books of `Holding`. */
export type Expected = { position: number; settledAbove: number[]; isFinal: boolean; epoch: number }

export type Commit = Expected & { readonly holding: Holding }

/** One check of whether a partition may begin, with its decision and the reasons for it. */
export type Look = {
  holding: Holding
  /** The commit that the new owner found. */
  found: Commit | undefined
  isTimeUp: boolean
  isGroupSilent: boolean
  isOtherBusy: boolean
  isBusyHere: boolean
  hasBegun: boolean
}

export type Fetch = { fetched: number[]; handedOut: number[]; expected: number[] }

const handoverMs = 8_000
/**
 * The time between the moment when a lost partition is let go and the moment when its next owner stops
 * waiting, in milliseconds. The consumer has the same margin.
 */
const leavingMarginMs = 500

/** A partition in the hands of one member, with plain sets that say what the member should know. */
export class Holding {
  readonly partition = new Partition('events', 0, 0)
  epoch = 0
  start = 0
  /** The offset after the last one that was fetched. */
  top = 0
  /**
   * The settled offsets that this owner knows. Either it has settled them itself, or they are in the commit
   * that it began with.
   */
  readonly known = new Set<number>()
  readonly out = new Set<number>()
  readonly givenBack = new Set<number>()
  /** The largest number of offsets by which a single fetch has moved `top`. */
  longestFetch = 0
  idleCount = 0
  idleToldCount = 0

  begin(stored: StoredCommit, found: Commit | undefined): void {
    this.partition.begin(stored)
    const epoch = found?.epoch ?? 0
    // Its own commit, if a former try has committed and could not begin: no other owner begins between them.
    if (this.epoch === 0 || epoch !== this.epoch) this.epoch = epoch + 1
    this.start = stored.offset
    this.top = stored.offset
    this.known.clear()
    for (const offset of found?.settledAbove ?? []) this.known.add(offset)
  }

  lose(nowMs: number): void {
    this.partition.lose(() => {
      this.idleToldCount++
    }, nowMs)
  }

  isToHandOut(offset: number): boolean {
    if (offset < this.start || this.known.has(offset)) return false
    return !this.out.has(offset) && !this.givenBack.has(offset)
  }

  get isBegun(): boolean {
    return !this.partition.isWaiting
  }

  get position(): number {
    return Math.min(this.top, ...this.out, ...this.givenBack)
  }

  expected(isEnding: boolean): Expected {
    const { position, epoch } = this
    const settledAbove = [...this.known]
      .filter((offset) => offset >= position && offset < position + maxRememberedOffsets)
      .sort((a, b) => a - b)
    return {
      position,
      settledAbove,
      isFinal: (isEnding || this.partition.isLost) && this.out.size === 0,
      epoch,
    }
  }

  returned(offset: number): void {
    this.out.delete(offset)
    if (this.out.size === 0 && this.partition.isLost) this.idleCount++
  }
}

/** A process. It learns of a rebalance when it joins, and it doesn't join while it is paused. */
export class Member {
  readonly name: string
  holding: Holding | undefined
  readonly leaving = new Set<Holding>()
  /** All holdings that this member ever had. Records of a partition that was let go may still settle. */
  readonly holdings: Holding[] = []
  /** The generation of the member's last join; 0 before the first join. */
  generation = 0
  isPaused = false
  isStopping = false
  fetchPosition = 0
  takeoverEndsMs = 0

  constructor(name: string) {
    this.name = name
  }

  lose(nowMs: number): void {
    const { holding } = this
    if (holding === undefined) return
    this.holding = undefined
    holding.lose(nowMs)
    if (holding.isBegun) this.leaving.add(holding)
  }

  get mayFetch(): boolean {
    return this.holding !== undefined && !this.isStopping && !this.holding.partition.wantsPause
  }

  /** The holdings for which nothing new is begun. Their records may be given back. */
  get endingHoldings(): Holding[] {
    return this.holdings.filter(({ partition }) => partition.isLost || this.isStopping)
  }
}

/**
 * A model of one partition with its log, a group of three members, and the commit that the broker has stored.
 * The members use the real `Partition` and the real `takeOver`, as `GroupMember` does. A read of the stored
 * commit and the commit that follows from it are one step. So the model assumes that the margin of a leaving
 * partition is long enough.
 */
export class SimulatedGroup {
  readonly members: Member[] = ['a', 'b', 'c'].map((name) => new Member(name))
  /** The offsets that have a record, in ascending order. */
  readonly log: number[] = []
  readonly #logStart: number
  logEnd: number
  /** The offsets that any member has settled. */
  readonly settled = new Set<number>()
  stored: StoredCommit = { offset: -1, metadata: null }
  /** Every commit that the broker took. */
  readonly commits: Commit[] = []
  readonly looks: Look[] = []
  readonly fetches: Fetch[] = []
  /** The events that have happened, in words. */
  readonly seen = new Set<string>()
  /** The calls of `takeOver`. Each call ends by itself, a moment after its look. */
  readonly takeovers: Promise<void>[] = []
  #generation = 0
  #nowMs = 0
  /** The members that said at their last join that they have something in flight. */
  #busy: ReadonlySet<Member> = new Set()

  constructor(logStart: number) {
    this.#logStart = logStart
    this.logEnd = logStart
  }

  /** Appends one record for each gap. A gap of 1 leaves out no offset. */
  append(gaps: readonly number[]): void {
    for (const gap of gaps) {
      this.log.push(this.logEnd + gap - 1)
      this.logEnd += gap
    }
  }

  appendMarkers(count: number): void {
    this.logEnd += count
  }

  pass(ms: number): void {
    this.#nowMs += ms
  }

  get joiners(): Member[] {
    return this.members.filter(({ isPaused }) => !isPaused)
  }

  /**
   * Lets every member join that isn't paused, and gives the partition to `owner`. A paused member is out of
   * the group, and comes back under a new name.
   */
  rebalance(owner: Member): void {
    const wasIn = (member: Member): boolean => this.isInGroup(member)
    const { joiners } = this
    this.#busy = new Set(
      joiners.filter(({ holding, leaving }) => holding?.isBegun === true || leaving.size > 0),
    )
    for (const member of joiners) {
      const isRenamed = member.generation > 0 && !wasIn(member)
      if (isRenamed) this.seen.add('a member came back under a new name')
      if (isRenamed || member !== owner) member.lose(this.#nowMs)
      if (member === owner) this.#assign(member)
    }
    this.#generation++
    for (const member of joiners) member.generation = this.#generation
  }

  #assign(member: Member): void {
    member.takeoverEndsMs = this.#nowMs + handoverMs
    if (member.holding === undefined) {
      member.holding = new Holding()
      member.holdings.push(member.holding)
    } else if (member.holding.isBegun) {
      this.seen.add('a partition was kept')
      member.fetchPosition = this.stored.offset
    }
  }

  isInGroup({ generation }: Member): boolean {
    return generation > 0 && generation === this.#generation
  }

  /** Replaces a member by a new process, which joins at the next rebalance. */
  crash(member: Member): void {
    this.members[this.members.indexOf(member)] = new Member(member.name)
  }

  async look(member: Member, isGroupSilent: boolean, fate: Fate): Promise<void> {
    const { holding } = member
    if (holding === undefined) return
    const busyOthers = new Set(this.#busy)
    busyOthers.delete(member)
    const isTimeUp = this.#nowMs >= member.takeoverEndsMs
    const look: Look = {
      holding,
      found: this.commits.at(-1),
      isTimeUp,
      isGroupSilent,
      isOtherBusy: busyOthers.size > 0,
      isBusyHere: member.leaving.size > 0,
      hasBegun: false,
    }
    let isOver = false
    const takeover = takeOver({
      partitions: [holding.partition],
      handoverMs: isTimeUp ? 0 : 3_600_000,
      readStored: () => Promise.resolve([this.stored]),
      readBusyUnits: () =>
        Promise.resolve(isGroupSilent ? undefined : new Set([...busyOthers].map(() => holding.partition.id))),
      isBusyHere: () => look.isBusyHere,
      begin: async ([ready]) => {
        look.hasBegun = true
        if (ready !== undefined) this.#begin(member, holding, ready.stored, fate)
      },
      isOver: () => isOver,
      onTrouble: () => undefined,
    })
    this.takeovers.push(takeover)
    // The reads resolve at once, so the first look is over after one turn. `isOver` prevents a second look.
    await nextTurn()
    isOver = true
    this.looks.push(look)
  }

  #begin(member: Member, holding: Holding, stored: StoredCommit, fate: Fate): void {
    const first = stored.offset < 0 ? { offset: this.#logStart, metadata: null } : stored
    holding.begin(first, this.commits.at(-1))
    const standing = holding.partition.standing(false)
    if (!this.#send(member, holding, standing, fate)) throw new Error('not committed')
    member.fetchPosition = standing.position
    holding.partition.begun()
  }

  /**
   * Fetches a batch of at most `count` records. If `reachesOn` is true, the fetch goes on past the markers
   * behind them.
   */
  fetch(member: Member, count: number, reachesOn: boolean): void {
    const { holding } = member
    if (holding === undefined) return
    const available = this.log.filter((offset) => offset >= member.fetchPosition)
    const fetched = available.slice(0, count)
    const next = reachesOn ? (available[fetched.length] ?? this.logEnd) : (fetched.at(-1) ?? -1) + 1
    const expected = fetched.filter((offset) => holding.isToHandOut(offset))
    const handedOut = fetched.filter((offset) => holding.partition.take(offset))
    if (handedOut.some((offset) => this.settled.has(offset))) this.seen.add('a settled record was repeated')
    if (next > member.fetchPosition) holding.partition.passOver(next)
    member.fetchPosition = Math.max(member.fetchPosition, next)
    for (const offset of expected) holding.out.add(offset)
    holding.longestFetch = Math.max(holding.longestFetch, next - holding.top)
    holding.top = Math.max(holding.top, next)
    if (holding.isBegun && holding.partition.wantsPause) this.seen.add('a window was full')
    this.fetches.push({ fetched, handedOut, expected })
  }

  settle(holding: Holding, offset: number): void {
    holding.known.add(offset)
    holding.returned(offset)
    this.settled.add(offset)
    holding.partition.settle(offset)
  }

  giveBack(holding: Holding, offset: number): void {
    holding.givenBack.add(offset)
    holding.returned(offset)
    holding.partition.giveBack()
  }

  commit(member: Member, fate: Fate): void {
    for (const holding of member.leaving) {
      const isTooLate = this.#nowMs - holding.partition.lostAtMs > handoverMs - leavingMarginMs
      const isOvertaken = holding.partition.isOvertaken(this.stored)
      if (isOvertaken) this.seen.add('an overtaken owner made no commit')
      if (isTooLate || isOvertaken) member.leaving.delete(holding)
    }
    const begun = member.holding?.isBegun === true ? [member.holding] : []
    const news = [...begun, ...member.leaving]
      .map((holding) => ({ holding, standing: holding.partition.standing(member.isStopping) }))
      .filter(({ holding, standing }) => holding.partition.isNews(standing))
    const isTaken = news.every(({ holding, standing }) => this.#send(member, holding, standing, fate))
    if (!isTaken) return
    for (const holding of member.leaving) {
      const { partition } = holding
      if (!partition.isNews(partition.standing(false)) && partition.isIdle) member.leaving.delete(holding)
    }
  }

  #send(member: Member, holding: Holding, standing: Standing, fate: Fate): boolean {
    if (!this.isInGroup(member)) this.seen.add('a commit of a former generation was refused')
    if (!this.isInGroup(member) || fate === 'refused') return false
    this.stored = holding.partition.commitOf(standing)
    this.commits.push({ holding, ...holding.expected(member.isStopping) })
    if (!holding.isBegun) this.seen.add('an owner began')
    else if (holding.partition.isLost) this.seen.add('a former owner made a commit')
    if (fate === 'answer lost') return false
    holding.partition.committed(standing)
    return true
  }
}
