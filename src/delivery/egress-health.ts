import { isOwnFault, type Outcome } from './outcome.ts'

/** Called when the network of this process becomes suspect, and when it no longer is. */
export type OnEgressSuspect = (isSuspect: boolean, evidence: EgressEvidence) => void

/**
 * The counts of servers with a request in the last minute. `lost`: servers that answered until recently and
 * don't answer any more. `dead`: other servers that don't answer. `working`: servers that answer.
 */
export type EgressEvidence = { readonly lost: number; readonly dead: number; readonly working: number }

/** Time between two calls of `judge`, in milliseconds. All other times are counted in these intervals. */
export const judgeEveryMs = 5_000
/** Number of intervals for which the last request to a server counts. */
const recent = 60_000 / judgeEveryMs
/** A server that answered within this number of intervals before its first failure was a working server. */
const remembered = (15 * 60_000) / judgeEveryMs
/** Number of intervals after its first failure for which a server counts as lost. */
const lostFor = (5 * 60_000) / judgeEveryMs
/** Number of intervals in a row that have to agree before the network becomes suspect, or no longer is. */
const agreeing = 3
/** Limit on the servers that are observed. A share needs no more. */
const maxServers = 2_000

/** The least number of lost servers. If fewer than `leastForShare` servers count, all have to be lost. */
const leastLost = 3
const leastForShare = 10
/** The share of lost servers at which the network is suspect. */
const suspectShare = 0.5
/** If no server has answered since the start, this number of dead servers makes the network suspect. */
const leastDead = 10

/** All times are numbers of intervals. */
type Server = {
  lastAt: number
  /** The time of the last answer; `-Infinity` if there was none. */
  answeredAt: number
  /** The time of the first failure after the last answer. */
  failedAt: number
  state: keyof EgressEvidence
}

const newServer: Readonly<Server> = {
  lastAt: 0,
  answeredAt: Number.NEGATIVE_INFINITY,
  failedAt: 0,
  state: 'dead',
}

/**
 * Recognizes that the network between this process and all servers fails: a node without a route, a firewall
 * rule, a DNS server that is down. Then most servers that answered until recently stop answering at the same
 * time. Any answer counts as an answer, whatever its status, and any request without an answer as a failure,
 * because a broken network may refuse, lose, redirect or delay.
 *
 * A server is an origin (`https://example.com:8443`), so a thousand hooks of one provider count once.
 */
export class EgressHealth {
  readonly #onSuspect: OnEgressSuspect
  readonly #servers = new Map<string, Server>()
  #now = 0
  #hasAnswered = false
  #isSuspect = false
  /** Number of intervals in a row that contradict `#isSuspect`. */
  #contradictions = 0

  constructor(onSuspect: OnEgressSuspect) {
    this.#onSuspect = onSuspect
  }

  /** Takes the outcome of one request. */
  take(origin: string, outcome: Outcome): void {
    const server = this.#servers.get(origin)
    if (outcome.kind === 'answer') this.#answered(origin, server)
    else if (!saysNothing(outcome)) this.#failed(origin, server)
  }

  #answered(origin: string, server: Server | undefined): void {
    this.#hasAnswered = true
    if (server === undefined) {
      this.#add(origin, { ...newServer, lastAt: this.#now, answeredAt: this.#now, state: 'working' })
      return
    }
    server.lastAt = this.#now
    server.answeredAt = this.#now
    server.state = 'working'
  }

  #failed(origin: string, server: Server | undefined): void {
    if (server === undefined) {
      this.#add(origin, { ...newServer, lastAt: this.#now })
      return
    }
    if (server.state === 'working') {
      server.state = this.#isRemembered(server.answeredAt) ? 'lost' : 'dead'
      server.failedAt = this.#now
    }
    server.lastAt = this.#now
  }

  #add(origin: string, server: Server): void {
    if (this.#servers.size < maxServers) this.#servers.set(origin, server)
  }

  #isRemembered(at: number): boolean {
    return this.#now - at <= remembered
  }

  /** Call this every `judgeEveryMs`. */
  judge(): void {
    const evidence = this.#count()
    this.#now++
    if (!this.#contradicts(evidence)) {
      this.#contradictions = 0
      return
    }
    this.#contradictions++
    if (this.#contradictions < agreeing) return
    this.#contradictions = 0
    this.#isSuspect = !this.#isSuspect
    this.#onSuspect(this.#isSuspect, evidence)
  }

  /**
   * Counts the servers with a recent request, and forgets servers without a request for a long time. A lost
   * server is dead after a while, because a network takes all servers away at the same time. But as long as
   * the network is suspect, its lost servers stay lost.
   */
  #count(): EgressEvidence {
    const count = { lost: 0, dead: 0, working: 0 }
    for (const [origin, server] of this.#servers) {
      const { lastAt, failedAt, state } = server
      if (state === 'lost' && !this.#isSuspect && this.#now - failedAt > lostFor) server.state = 'dead'
      if (!this.#isRemembered(lastAt)) this.#servers.delete(origin)
      else if (this.#now - lastAt < recent) count[server.state]++
    }
    return count
  }

  /** Without recent requests, a suspect network stays suspect until its servers are forgotten. */
  #contradicts(evidence: EgressEvidence): boolean {
    const looksSuspect = this.#looksSuspect(evidence)
    if (!this.#isSuspect) return looksSuspect
    return !looksSuspect && (evidence.working > 0 || this.#servers.size === 0)
  }

  #looksSuspect({ lost, dead, working }: EgressEvidence): boolean {
    if (!this.#hasAnswered) return lost + dead >= leastDead
    const counted = lost + working
    return lost >= leastLost && lost >= counted * (counted < leastForShare ? 1 : suspectShare)
  }
}

/** Returns true for an outcome that was decided before anything was sent into the network. */
function saysNothing(outcome: Outcome): boolean {
  return isOwnFault(outcome) || outcome.kind === 'address' || outcome.kind === 'request'
}
