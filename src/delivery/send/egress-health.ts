import { type EgressEvidence, type EgressHook, EgressServers, type EgressVotes } from './egress-servers.ts'
import type { Outcome } from '../outcomes/outcome.ts'

export type { EgressEvidence, EgressHook } from './egress-servers.ts'

/**
 * Called when the network of this process becomes suspect, and when it is no longer suspect. `failingForMs`:
 * the time since the first of the failures that made the network suspect. It is 0 when the network is no
 * longer suspect.
 */
export type OnEgressSuspect = (isSuspect: boolean, evidence: EgressEvidence, failingForMs: number) => void

/**
 * Interval between two calls of `judge`, in milliseconds. All other times in this file are numbers of such
 * intervals.
 */
export const judgeEveryMs = 5_000
const minutes = 60_000 / judgeEveryMs

/**
 * A server that stops answering counts as lost for this number of intervals. After that, it counts as dead.
 */
const lostFor = 15 * minutes
/**
 * A server is forgotten if it got no request for this number of intervals. While the network is suspect, the
 * number is larger (more than an hour), because a failing server may get only one request per hour.
 */
const remembered = 2 * lostFor
const rememberedWhileSuspect = 65 * minutes
/** The judgement about the network changes if this number of judgements in a row contradict it. */
const agreeing = 3
/**
 * The network becomes suspect if at least `leastLost` votes are lost, and if they are more than the share
 * `suspectShare` of the lost and working votes. If there are fewer than `leastForShare` such votes, all of
 * them must be lost. The network is no longer suspect when the share of lost votes is `soundShare` or less.
 * Shares are those of the votes that are limited by source.
 */
const leastLost = 3
const leastForShare = 10
const suspectShare = 0.5
const soundShare = 0.25
/**
 * After this number of intervals, the network is no longer suspect even if many votes are still lost, because
 * after such a long time, a provider of these servers is probably to blame. There is one exception. If at
 * least `leastForShare` votes are lost, and if their share is more than `brokenShare` of all votes, the
 * network stays suspect.
 */
const mostSuspect = 60 * minutes
const brokenShare = 0.9
/**
 * A process that has just started doesn't know which servers worked before. So from `startAfter` to `lostFor`
 * intervals after the start, another rule applies too: the network becomes suspect if at least `leastAtStart`
 * votes are dead and at most `mostAtStart` work. A server that answers may be in the same
 * network. The suspicion ends when `soundAtStart` servers answer, or after `lostFor` more intervals.
 */
const startAfter = 2 * minutes
const leastAtStart = 10
const mostAtStart = 1
const soundAtStart = 3

/**
 * Recognizes failures of the network between this process and all servers, such as a missing route, a wrong
 * firewall rule, or a DNS server that is down. After such a failure, most servers that answered until
 * recently can't be connected to. A server works if it answers with any status. It fails if no connection to
 * it can be made, because a broken network may refuse, lose, redirect or delay connections. If a connection
 * was made and the answer to its request is late or broken, this says nothing: the network has just reached
 * the server. If a broken network interrupts a connection, the next request needs a new one.
 *
 * The servers vote. No customer can make this judgement alone, because `EgressServers` counts votes by
 * address and by destination, and limits those of a source.
 */
export class EgressHealth {
  readonly #onSuspect: OnEgressSuspect
  readonly #servers = new EgressServers()
  #evidence: EgressEvidence = { lost: 0, dead: 0, working: 0 }
  #now = 0
  /** The time since which the network has been suspect. */
  #suspectAt: number | undefined
  /** True if the network became suspect by the rule for a process that has just started. */
  #isSinceStart = false
  /** Number of intervals in a row that contradict the present judgement. */
  #contradictions = 0

  constructor(onSuspect: OnEgressSuspect) {
    this.#onSuspect = onSuspect
  }

  /** The votes at the last judgement. */
  get evidence(): EgressEvidence {
    return this.#evidence
  }

  /**
   * Takes the outcome of one request. `wasSent`: true if a connection was made, and at least a part of the
   * request was sent on it. `address`: the address of this connection's peer, if it is known.
   */
  take(hook: EgressHook, outcome: Outcome, wasSent: boolean, address: string | undefined): void {
    const server = this.#servers.find(hook)
    if (outcome.kind === 'answer') {
      if (server === undefined) this.#servers.add(hook, 'working', this.#now)
      const added = server ?? hook.server
      if (added !== undefined) this.#servers.answered(added, address, this.#now)
    } else if (!wasSent && isFailure(outcome, server !== undefined)) {
      if (server === undefined) this.#servers.add(hook, 'dead', this.#now)
      else this.#failed(server)
    }
  }

  #failed(server: NonNullable<EgressHook['server']>): void {
    server.lastAt = this.#now
    if (server.state !== 'working') return
    server.state = 'lost'
    server.failedAt = this.#now
  }

  /** Call this every `judgeEveryMs`. */
  judge(): void {
    this.#age()
    const votes = this.#servers.votes()
    const { lost, dead, working } = votes
    this.#evidence = { lost, dead, working }
    const isContradiction =
      this.#suspectAt === undefined ? this.#looksSuspect(votes) : this.#looksSound(votes)
    this.#contradictions = isContradiction ? this.#contradictions + 1 : 0
    if (this.#contradictions === agreeing) {
      this.#contradictions = 0
      if (this.#suspectAt === undefined) this.#becomeSuspect(votes)
      else this.#becomeSound(votes)
    }
    this.#now++
  }

  /**
   * Forgets servers that have got no request for a long time. While the network isn't suspect, changes `lost`
   * to `dead` for servers that have been lost for a long time.
   */
  #age(): void {
    const isSuspect = this.#suspectAt !== undefined
    const kept = isSuspect ? rememberedWhileSuspect : remembered
    for (const server of this.#servers) {
      const { lastAt, failedAt, state } = server
      if (this.#now - lastAt > kept) this.#servers.forget(server)
      else if (state === 'lost' && !isSuspect && this.#now - failedAt > lostFor) this.#servers.died(server)
    }
  }

  #looksSuspect(votes: EgressVotes): boolean {
    const { lost, working } = votes
    const isLost = lost + working < leastForShare ? working === 0 : lostShare(votes) > suspectShare
    return (lost >= leastLost && isLost) || this.#looksSuspectAtStart(votes)
  }

  #looksSuspectAtStart({ dead, working }: EgressEvidence): boolean {
    const isStart = this.#now >= startAfter && this.#now <= lostFor
    return isStart && dead >= leastAtStart && working <= mostAtStart
  }

  #looksSound(votes: EgressVotes): boolean {
    const { lost, working } = votes
    const forIntervals = this.#now - (this.#suspectAt ?? this.#now)
    if (this.#isSinceStart) return working >= soundAtStart || forIntervals > lostFor
    if (lostShare(votes) <= soundShare) return true
    if (forIntervals <= mostSuspect) return false
    return lost < leastForShare || lost <= (lost + working) * brokenShare || lostShare(votes) <= suspectShare
  }

  #becomeSuspect(votes: EgressVotes): void {
    this.#isSinceStart = this.#looksSuspectAtStart(votes)
    const firstAt = Math.min(this.#now, this.#isSinceStart ? votes.firstDeadAt : votes.firstLostAt)
    this.#suspectAt = this.#now
    this.#onSuspect(true, this.#evidence, (this.#now - firstAt + 1) * judgeEveryMs)
  }

  /**
   * Ends the suspicion. If only a few servers are still lost, they stay `lost` for `lostFor` more intervals,
   * because the network may still be broken. If many servers are still lost, the suspicion ends because it
   * took too long, and these servers become `dead`.
   */
  #becomeSound(votes: EgressVotes): void {
    const isRecovered = lostShare(votes) <= soundShare
    for (const server of this.#servers) {
      if (server.state !== 'lost') continue
      if (isRecovered) server.failedAt = this.#now
      else this.#servers.died(server)
    }
    this.#suspectAt = undefined
    this.#onSuspect(false, this.#evidence, 0)
  }
}

function lostShare({ limited: { lost, working } }: EgressVotes): number {
  return lost === 0 ? 0 : lost / (lost + working)
}

/**
 * Returns true if the network may be to blame that no connection was made. If the address is forbidden and
 * the server had other outcomes before, a wrong DNS server or proxy may be to blame.
 */
function isFailure({ kind }: Outcome, isKnown: boolean): boolean {
  switch (kind) {
    case 'timeout':
    case 'connection':
    case 'dns':
    case 'certificate':
      return true
    case 'address':
      return isKnown
    case 'answer':
    case 'proxy':
    case 'files':
    case 'login':
    case 'request':
      return false
  }
}
