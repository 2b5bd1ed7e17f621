import { networkOf } from '../../address/address.ts'

/**
 * The part of a hook that decides whose vote its failures are. It is made once for each pool of connections.
 */
export type EgressHook = {
  readonly destinationId: string
  /** The first of the sources to which the destination is connected. It stands for the customer. */
  readonly sourceId: string
  /** The name or the address in the hook's URL, without its port. */
  readonly host: string
  /** The hook's server in the table, so that an answer costs no search. Only `EgressServers` sets it. */
  server: Server | undefined
}

/** Votes. No two of them come from the same destination, or from servers at the same address. */
export type EgressEvidence = {
  /** Servers that have stopped answering recently. */
  readonly lost: number
  /** Servers that stopped answering earlier, or never answered. */
  readonly dead: number
  /** Servers that answered their last request. */
  readonly working: number
}

/** The votes, and what is left of them if the votes of each source are limited to `mostOfSource`. */
export type EgressVotes = EgressEvidence & {
  readonly limited: Pick<EgressEvidence, 'lost' | 'working'>
  /** When the first of the lost or dead servers that have a vote failed. `Infinity`: there is none. */
  readonly firstLostAt: number
  readonly firstDeadAt: number
}

/** A host of a destination. All times are numbers of intervals, and -1 if there was no such time. */
export type Server = {
  readonly owner: Owner
  readonly host: string
  /** The address of the last answer, if it is known. */
  address: string | undefined
  /** What the vote is for: the IPv4 address or the /64 of IPv6; a part of the name if no address is known. */
  network: string
  lastAt: number
  answeredAt: number
  /** The time of the first failure after the last answer. */
  failedAt: number
  state: keyof EgressEvidence
  isForgotten: boolean
}

/** A destination with its hosts. */
type Owner = {
  readonly destinationId: string
  readonly source: Source
  readonly servers: Map<string, Server>
}
type Source = { readonly id: string; readonly owners: Map<string, Owner> }

/**
 * Limit on the number of destinations that are observed. More destinations would not make the shares much
 * more exact.
 */
const maxOwners = 2_000
/** Limit on the hosts of one destination that are observed. All of them together have one vote. */
const maxHosts = 4
/**
 * Limit on the weight of a source, in votes. It equals the number of votes that a suspicion needs at least.
 * So an installation with a single source can have a suspicion, but the one source of a customer can't
 * outvote three others.
 */
const mostOfSource = 3

/**
 * The servers whose requests are observed, and their votes. One customer can't fill the table: when it is
 * full, working servers take the place of dead ones, and a source with few destinations takes a place of the
 * source that has most.
 */
export class EgressServers {
  readonly #sources = new Map<string, Source>()
  #owners = 0
  /** Destinations all of whose hosts are dead. Those that have been dead for the longest time come first. */
  readonly #dead = new Set<Owner>()
  /** The last time at which no dead destination could make room for another dead one. */
  #fullAt = -1

  find(hook: EgressHook): Server | undefined {
    if (hook.server?.isForgotten === false) return hook.server
    hook.server = this.#sources.get(hook.sourceId)?.owners.get(hook.destinationId)?.servers.get(hook.host)
    return hook.server
  }

  /** Adds a server after its first request, if there is room for it. */
  add(hook: EgressHook, state: 'working' | 'dead', now: number): void {
    const owner = this.#ownerOf(hook, state, now)
    if (owner === undefined || !hasRoom(owner, state)) return
    if (state === 'working') this.#dead.delete(owner)
    const { host } = hook
    const times = { lastAt: now, answeredAt: state === 'working' ? now : -1, failedAt: now }
    const place = { owner, host, address: undefined, network: networkOfHost(host) }
    hook.server = { ...place, ...times, state, isForgotten: false }
    owner.servers.set(host, hook.server)
  }

  /** Takes an answer. `address`: the address that answered, if it is known. */
  answered(server: Server, address: string | undefined, now: number): void {
    server.lastAt = now
    server.answeredAt = now
    if (server.state === 'dead') this.#dead.delete(server.owner)
    server.state = 'working'
    if (address === undefined || address === server.address) return
    server.address = address
    server.network = networkOf(address) ?? server.network
  }

  /** Changes `lost` to `dead`. */
  died(server: Server): void {
    const { owner } = server
    server.state = 'dead'
    for (const { state } of owner.servers.values()) if (state !== 'dead') return
    this.#dead.add(owner)
  }

  forget(server: Server): void {
    const { owner, host } = server
    server.isForgotten = true
    owner.servers.delete(host)
    if (owner.servers.size === 0) this.#drop(owner)
  }

  *[Symbol.iterator](): Iterator<Server> {
    for (const { owners } of this.#sources.values())
      for (const { servers } of owners.values()) yield* servers.values()
  }

  /**
   * Counts the votes. A destination has one vote, and so have all servers at one address. A server isn't lost
   * if another server at its address, or another host of its destination, has answered since it failed.
   */
  votes(): EgressVotes {
    const answeredAt = new Map<string | Owner, number>()
    const inState: Record<keyof EgressEvidence, Server[]> = { lost: [], dead: [], working: [] }
    for (const server of this) {
      for (const voter of [server.network, server.owner])
        answeredAt.set(voter, Math.max(answeredAt.get(voter) ?? -1, server.answeredAt))
      inState[server.state].push(server)
    }
    const hasFailed = ({ network, owner, failedAt }: Server): boolean =>
      failedAt >= Math.max(answeredAt.get(network) ?? -1, answeredAt.get(owner) ?? -1)
    const used = new Set<string | Owner>()
    const lost = voters(inState.lost.filter(hasFailed), used)
    const working = voters(inState.working, used)
    const dead = voters(inState.dead, used)
    return {
      lost: lost.length,
      dead: dead.length,
      working: working.length,
      limited: limitedBySource(lost, working),
      firstLostAt: firstFailure(lost),
      firstDeadAt: firstFailure(dead),
    }
  }

  #ownerOf(
    { sourceId, destinationId }: EgressHook,
    state: 'working' | 'dead',
    now: number,
  ): Owner | undefined {
    const known = this.#sources.get(sourceId)?.owners.get(destinationId)
    if (known !== undefined) return known
    if (this.#owners >= maxOwners) {
      const given = state === 'working' ? this.#forWorking(sourceId) : this.#forDead(sourceId, now)
      if (given === undefined) return undefined
      for (const server of given.servers.values()) server.isForgotten = true
      this.#drop(given)
    }
    let source = this.#sources.get(sourceId)
    if (source === undefined) this.#sources.set(sourceId, (source = { id: sourceId, owners: new Map() }))
    const owner = { destinationId, source, servers: new Map<string, Server>() }
    source.owners.set(destinationId, owner)
    this.#owners++
    if (state === 'dead') this.#dead.add(owner)
    return owner
  }

  /**
   * Returns the destination whose place a working one of the source `sourceId` may take: a dead one, or else
   * one of the source that has most. Returns `undefined` if the source already has its share of the table.
   */
  #forWorking(sourceId: string): Owner | undefined {
    const [dead] = this.#dead
    if (dead !== undefined) return dead
    const source = this.#sources.get(sourceId)
    const share = maxOwners / (this.#sources.size + (source === undefined ? 1 : 0))
    if ((source?.owners.size ?? 0) + 1 > share) return undefined
    let largest: Source | undefined
    for (const one of this.#sources.values())
      if (largest === undefined || one.owners.size > largest.owners.size) largest = one
    const [owner] = largest?.owners.values() ?? []
    return owner
  }

  /**
   * Returns the dead destination whose place another dead one may take: one of the source that has most of
   * them. After a search that found none, doesn't search again in the same interval.
   */
  #forDead(sourceId: string, now: number): Owner | undefined {
    if (this.#fullAt === now) return undefined
    const counts = new Map<string, number>()
    let most: Owner | undefined
    for (const owner of this.#dead) {
      const { id } = owner.source
      counts.set(id, (counts.get(id) ?? 0) + 1)
      if (most === undefined || (counts.get(id) ?? 0) > (counts.get(most.source.id) ?? 0)) most = owner
    }
    if (most !== undefined && (counts.get(most.source.id) ?? 0) > (counts.get(sourceId) ?? 0) + 1) return most
    this.#fullAt = now
    return undefined
  }

  #drop(owner: Owner): void {
    const { source, destinationId } = owner
    this.#dead.delete(owner)
    if (source.owners.get(destinationId) !== owner) return
    source.owners.delete(destinationId)
    this.#owners--
    if (source.owners.size === 0) this.#sources.delete(source.id)
  }
}

/** Returns true if a destination may have one more host. A working host takes the place of a dead one. */
function hasRoom({ servers }: Owner, state: 'working' | 'dead'): boolean {
  if (servers.size < maxHosts) return true
  const dead = state === 'dead' ? undefined : [...servers.values()].find((one) => one.state === 'dead')
  if (dead === undefined) return false
  dead.isForgotten = true
  servers.delete(dead.host)
  return true
}

/**
 * Returns servers such that each destination and each network has one of them at most, and adds both to
 * `used`. Destinations with few hosts come first, because they have fewer networks to vote for.
 */
function voters(servers: readonly Server[], used: Set<string | Owner>): readonly Server[] {
  return servers
    .toSorted((one, other) => one.owner.servers.size - other.owner.servers.size)
    .filter(({ owner, network }) => {
      if (used.has(owner) || used.has(network)) return false
      used.add(owner).add(network)
      return true
    })
}

function limitedBySource(lost: readonly Server[], working: readonly Server[]): EgressVotes['limited'] {
  const bySource = new Map<Source, { lost: number; working: number }>()
  const votesOf = ({ owner: { source } }: Server): { lost: number; working: number } => {
    let votes = bySource.get(source)
    if (votes === undefined) bySource.set(source, (votes = { lost: 0, working: 0 }))
    return votes
  }
  for (const server of lost) votesOf(server).lost++
  for (const server of working) votesOf(server).working++
  const limited = { lost: 0, working: 0 }
  for (const votes of bySource.values()) {
    const all = votes.lost + votes.working
    const most = Math.min(mostOfSource, all)
    limited.lost += (most * votes.lost) / all
    limited.working += (most * votes.working) / all
  }
  return limited
}

function firstFailure(servers: readonly Server[]): number {
  return servers.reduce((first, { failedAt }) => Math.min(first, failedAt), Infinity)
}

/**
 * Returns the network of a host that hasn't answered yet. For a name, it is the part that somebody has most
 * likely registered: `example.com` of `a.b.example.com`, and `example.co.uk` of `a.example.co.uk`.
 */
function networkOfHost(host: string): string {
  const address = networkOf(host)
  if (address !== undefined) return address
  const labels = host.split('.').filter((label) => label !== '')
  const [second = '', last = ''] = labels.slice(-2)
  return labels.slice(second.length <= 3 && last.length === 2 ? -3 : -2).join('.')
}
