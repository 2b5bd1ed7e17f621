import { isOwnFault, type Outcome } from './outcome.ts'

/**
 * Called when the network of this process becomes suspect, and when it is no longer suspect. `failingForMs`:
 * the time since the first of the failures that made the network suspect. It is 0 when the network is no
 * longer suspect.
 */
export type OnEgressSuspect = (isSuspect: boolean, evidence: EgressEvidence, failingForMs: number) => void

/**
 * Numbers of servers. `working`: servers that answered their last request. `lost`: servers that have stopped
 * answering recently. `dead`: servers that stopped answering earlier, or never answered.
 */
export type EgressEvidence = { readonly lost: number; readonly dead: number; readonly working: number }

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
 * Limit on the number of servers that are observed. More servers would not make the shares much more exact.
 */
const maxServers = 2_000

/**
 * The network becomes suspect if at least `leastLost` servers are lost, and if they are at least the share
 * `suspectShare` of the lost and working servers. If there are fewer than `leastForShare` such servers, all
 * of them must be lost. The network is no longer suspect when the share of lost servers is `soundShare` or
 * less.
 */
const leastLost = 3
const leastForShare = 10
const suspectShare = 0.5
const soundShare = 0.25
/**
 * After this number of intervals, the network is no longer suspect even if many servers are still lost,
 * because after such a long time, a provider of these servers is probably to blame. There is one exception.
 * If at least `leastForShare` servers are lost, and if their share is more than `brokenShare`, the network
 * stays suspect.
 */
const mostSuspect = 60 * minutes
const brokenShare = 0.9
/**
 * A process that has just started doesn't know which servers worked before. So from `startAfter` to `lostFor`
 * intervals after the start, another rule applies too: the network becomes suspect if at least `leastAtStart`
 * servers don't answer and at most `mostAtStart` servers answer. A server that answers may be in the same
 * network. The suspicion ends when `soundAtStart` servers answer, or after `lostFor` more intervals.
 */
const startAfter = 2 * minutes
const leastAtStart = 10
const mostAtStart = 1
const soundAtStart = 3

/** A server that is observed. All times are numbers of intervals. */
type Server = {
  lastAt: number
  /** The time of the first failure after the last answer. */
  failedAt: number
  state: keyof EgressEvidence
}

/**
 * Recognizes failures of the network between this process and all servers, such as a missing route, a wrong
 * firewall rule, or a DNS server that is down. After such a failure, most servers that answered until
 * recently stop answering. A server works if it answers with any status. Any request without an answer counts
 * as a failure, because a broken network may refuse, lose, redirect or delay requests.
 *
 * A server is an origin (`https://example.com:8443`). So a thousand hooks at one origin count as one server.
 */
export class EgressHealth {
  readonly #onSuspect: OnEgressSuspect
  readonly #servers = new Map<string, Server>()
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

  /** Takes the outcome of one request. */
  take(origin: string, outcome: Outcome): void {
    const server = this.#servers.get(origin)
    if (outcome.kind === 'answer') this.#answered(origin, server)
    else if (isFailure(outcome, server)) this.#failed(origin, server)
  }

  #answered(origin: string, server: Server | undefined): void {
    if (server === undefined) {
      this.#add(origin, 'working')
      return
    }
    server.lastAt = this.#now
    server.state = 'working'
  }

  #failed(origin: string, server: Server | undefined): void {
    if (server === undefined) {
      this.#add(origin, 'dead')
      return
    }
    if (server.state === 'working') {
      server.state = 'lost'
      server.failedAt = this.#now
    }
    server.lastAt = this.#now
  }

  #add(origin: string, state: 'working' | 'dead'): void {
    if (this.#servers.size >= maxServers) return
    this.#servers.set(origin, { lastAt: this.#now, failedAt: this.#now, state })
  }

  /** Call this every `judgeEveryMs`. */
  judge(): void {
    this.#age()
    const evidence = this.#count()
    const isContradiction =
      this.#suspectAt === undefined ? this.#looksSuspect(evidence) : this.#looksSound(evidence)
    this.#contradictions = isContradiction ? this.#contradictions + 1 : 0
    if (this.#contradictions === agreeing) {
      this.#contradictions = 0
      if (this.#suspectAt === undefined) this.#becomeSuspect(evidence)
      else this.#becomeSound(evidence)
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
    for (const [origin, server] of this.#servers) {
      const { lastAt, failedAt, state } = server
      if (this.#now - lastAt > kept) this.#servers.delete(origin)
      else if (state === 'lost' && !isSuspect && this.#now - failedAt > lostFor) server.state = 'dead'
    }
  }

  #count(): EgressEvidence {
    const count = { lost: 0, dead: 0, working: 0 }
    for (const { state } of this.#servers.values()) count[state]++
    return count
  }

  #looksSuspect(evidence: EgressEvidence): boolean {
    const { lost, working } = evidence
    const counted = lost + working
    const isLost = lost >= leastLost && lost >= counted * (counted < leastForShare ? 1 : suspectShare)
    return isLost || this.#looksSuspectAtStart(evidence)
  }

  #looksSuspectAtStart({ dead, working }: EgressEvidence): boolean {
    const isStart = this.#now >= startAfter && this.#now <= lostFor
    return isStart && dead >= leastAtStart && working <= mostAtStart
  }

  #looksSound({ lost, working }: EgressEvidence): boolean {
    const forIntervals = this.#now - (this.#suspectAt ?? this.#now)
    if (this.#isSinceStart) return working >= soundAtStart || forIntervals > lostFor
    const counted = lost + working
    if (lost <= counted * soundShare) return true
    return forIntervals > mostSuspect && (lost < leastForShare || lost <= counted * brokenShare)
  }

  #becomeSuspect(evidence: EgressEvidence): void {
    this.#isSinceStart = this.#looksSuspectAtStart(evidence)
    const blamed = this.#isSinceStart ? 'dead' : 'lost'
    let firstAt = this.#now
    for (const { state, failedAt } of this.#servers.values())
      if (state === blamed) firstAt = Math.min(firstAt, failedAt)
    this.#suspectAt = this.#now
    this.#onSuspect(true, evidence, (this.#now - firstAt + 1) * judgeEveryMs)
  }

  /**
   * Ends the suspicion. If only a few servers are still lost, they stay `lost` for `lostFor` more intervals,
   * because the network may still be broken. If many servers are still lost, the suspicion ends because it
   * took too long, and these servers become `dead`.
   */
  #becomeSound(evidence: EgressEvidence): void {
    const isRecovered = evidence.lost <= (evidence.lost + evidence.working) * soundShare
    for (const server of this.#servers.values()) {
      if (server.state !== 'lost') continue
      if (isRecovered) server.failedAt = this.#now
      else server.state = 'dead'
    }
    this.#suspectAt = undefined
    this.#onSuspect(false, evidence, 0)
  }
}

/**
 * Returns true if the network may be to blame for an outcome without an answer. If the address is forbidden
 * and the server had other outcomes before, a wrong DNS server or proxy may be to blame.
 */
function isFailure(outcome: Outcome, server: Server | undefined): boolean {
  if (isOwnFault(outcome) || outcome.kind === 'request') return false
  return outcome.kind !== 'address' || server !== undefined
}
