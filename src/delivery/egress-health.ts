import { isOwnFault, type Outcome } from './outcome.ts'

/**
 * Called when the network of this process becomes suspect, and when it no longer is. `failingForMs`: the time
 * since the first failure of a server that is lost.
 */
export type OnEgressSuspect = (isSuspect: boolean, evidence: EgressEvidence, failingForMs: number) => void

/**
 * Numbers of servers. `working`: the last request was answered. `lost`: the server was working until
 * recently, and doesn't answer any more. `dead`: the server has not answered for longer, or never.
 */
export type EgressEvidence = { readonly lost: number; readonly dead: number; readonly working: number }

/** Time between two calls of `judge`, in milliseconds. All other times are counted in these intervals. */
export const judgeEveryMs = 5_000
const minutes = 60_000 / judgeEveryMs

/** Number of intervals for which a server that fails counts as lost. After this time it is dead. */
const lostFor = 15 * minutes
/**
 * Number of intervals without a request after which a server is forgotten. As long as there are messages for
 * a failing server, it gets a request once an hour.
 */
const remembered = 2 * lostFor
const rememberedWhileSuspect = 65 * minutes
/** Number of intervals in a row that have to agree before the network becomes suspect, or no longer is. */
const agreeing = 3
/** Limit on the servers that are observed. A share needs no more. */
const maxServers = 2_000

/** The least number of lost servers. If fewer than `leastForShare` servers count, all have to be lost. */
const leastLost = 3
const leastForShare = 10
/** The shares of lost servers at which the network becomes suspect, and at which it no longer is. */
const suspectShare = 0.5
const soundShare = 0.25
/**
 * Number of intervals after which a network is no longer suspect although many servers are lost. Then a
 * provider of these servers is to blame. But if at least `leastForShare` servers and more than `brokenShare`
 * are lost, the network stays suspect.
 */
const mostSuspect = 60 * minutes
const brokenShare = 0.9
/**
 * A process that has just started doesn't know which servers worked before. Its network is suspect if, from
 * `startAfter` to `lostFor` intervals after the start, at least `leastAtStart` servers don't answer, and at
 * most `mostAtStart` does: it may be a server beside the process. The suspicion ends when some more answer,
 * and after `lostFor` intervals at the latest.
 */
const startAfter = 2 * minutes
const leastAtStart = 10
const mostAtStart = 1
const soundAtStart = 3

/** All times are numbers of intervals. */
type Server = {
  lastAt: number
  /** The time of the first failure after the last answer. */
  failedAt: number
  state: keyof EgressEvidence
}

/**
 * Recognizes that the network between this process and all servers fails: a node without a route, a firewall
 * rule, a DNS server that is down. Then most servers that answered until recently stop answering. Any answer
 * counts as an answer, whatever its status, and any request without an answer as a failure, because a broken
 * network may refuse, lose, redirect or delay.
 *
 * A server is an origin (`https://example.com:8443`), so a thousand hooks of one provider count once.
 */
export class EgressHealth {
  readonly #onSuspect: OnEgressSuspect
  readonly #servers = new Map<string, Server>()
  #now = 0
  /** The time since which the network has been suspect. */
  #suspectAt: number | undefined
  /** True if the suspicion is that of a process that has just started. */
  #isSinceStart = false
  /** Number of intervals in a row that contradict `#suspectAt`. */
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
   * Forgets servers without a request for a long time. Servers that are lost for a long time are dead, unless
   * the network is suspect.
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
   * Ends the suspicion. Servers that are still lost count as lost for some time more, because the network may
   * still be broken. But if the suspicion ends because it lasted for long, they are dead.
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
 * Returns true if an outcome without an answer may be a fault of the network. A forbidden address may be the
 * answer of a wrong DNS server or proxy, if the server has been reached before.
 */
function isFailure(outcome: Outcome, server: Server | undefined): boolean {
  if (isOwnFault(outcome) || outcome.kind === 'request') return false
  return outcome.kind !== 'address' || server !== undefined
}
