import { Resolver as DnsClient, type RecordWithTtl } from 'node:dns'
import { isLoopbackName } from '../../address/policy.ts'
import { fileShortage } from './file-shortage.ts'
import { FollowedFile } from './followed-file.ts'
import { HostsFile } from './hosts-file.ts'
import { namesServer } from './resolv-conf.ts'

/**
 * The result of the lookup of a name. `code` says why no addresses were found. It is a code of c-ares (Node's
 * DNS client), such as `ENOTFOUND`. If no file could be opened to ask DNS, it is `EMFILE` or `ENFILE`.
 */
export type Resolved =
  | { readonly ok: true; readonly addresses: readonly string[] }
  | { readonly ok: false; readonly code: string }

export type NameResolver = {
  /**
   * Finds the IPv4 and IPv6 addresses of a name in `/etc/hosts` or by DNS, in no particular order. DNS is
   * asked for the name as it is, without the machine's search domains. Calls `answered` once: before
   * `resolve` returns if DNS needn't be asked, and otherwise within about 2.5 s.
   */
  resolve(name: string, answered: (resolved: Resolved) => void): void
  /** Cancels all DNS questions that are under way. */
  close(): void
}

/** The outcome of a lookup in DNS. `stale`: no server could answer, so the earlier addresses are used. */
export type LookupOutcome = 'found' | 'not_found' | 'failed' | 'stale'

export type ResolverOptions = {
  /**
   * DNS servers, such as `192.0.2.1`, `192.0.2.1:5353` or `[2001:db8::1]:53`. If the list is empty, the
   * servers of `/etc/resolv.conf` are asked.
   */
  servers?: readonly string[]
  hostsPath?: string
  /**
   * Limit on the names that are kept. A name usually takes about 400 bytes of memory, and never more than 8
   * KB. The names that were least recently asked for are dropped first.
   */
  maxNames?: number
  onLookup?: (outcome: LookupOutcome, durationMs: number) => void
  /** The clock: returns milliseconds of a monotonic clock. */
  now?: () => number
}

/**
 * The shortest and the longest time in milliseconds for which an answer is valid, even if its TTL is shorter
 * or longer. The shortest time ensures that DNS isn't asked for each connection. The longest time ensures
 * that a changed address is noticed.
 */
const freshMs = { least: 1_000, most: 5 * 60_000 }
/**
 * Time for which expired addresses are still used if no server can answer (RFC 8767). While expired addresses
 * of a name are used, the servers are asked again after each `staleAgainMs`.
 */
const staleMs = 5 * 60_000
const staleAgainMs = 5_000
/**
 * Times for which a failed lookup is remembered: `noSuchNameMs` if the name has no addresses, `failureMs` if
 * no server could answer.
 */
const noSuchNameMs = 10_000
const failureMs = 1_000

/**
 * The longest time that a caller of `resolve` waits. It is much shorter than the deadline of a request to a
 * hook, which is five seconds. If the name has expired addresses that can still be used, the caller waits for
 * at most `deadlineWithStaleMs`.
 */
const deadlineMs = 2_500
const deadlineWithStaleMs = 500
/**
 * When addresses of one family (IPv4 or IPv6) have come, the lookup waits for this time for those of the
 * other family (RFC 8305, section 3).
 */
const otherFamilyMs = 50
/**
 * The timeouts and tries of c-ares for each question to a server. A question is tried more than once, because
 * UDP loses packets. Node checks only once per `timeout` which questions have timed out.
 */
const questionMs = { timeout: 500, maxTimeout: 1_000, tries: 4 }
/** If a timer fires later than this number of milliseconds, the process was suspended or busy. */
const suspendedMs = 100
/**
 * Number of lookups that start at once. The next lookups start after `nextBurstMs`, even if the earlier
 * lookups haven't ended. Without this limit, 800 questions at once took 2 s instead of 60 ms, because a
 * socket holds only a few hundred packets and loses all further ones.
 */
const burst = 32
const nextBurstMs = 5

/**
 * Limit on the addresses that are kept for one name and one family (IPv4 or IPv6). An answer has room for
 * thousands of addresses, and each connection would have to check all of them.
 */
const maxAddresses = 64

const loopback: readonly string[] = ['127.0.0.1', '::1']

/**
 * Creates a resolver that has a cache. It uses c-ares, which waits on sockets and blocks no thread.
 * `dns.lookup` would block one of libuv's four threads for each name, so a few names with servers that don't
 * answer would delay all other names and all file access.
 */
export function createResolver(options: ResolverOptions = {}): NameResolver {
  return new CachingResolver(options)
}

/** A name with its last results. */
class KnownName {
  readonly name: string
  answer: Resolved | undefined
  /** The time until which `answer` is valid. */
  untilMs = 0
  /**
   * `found`: the last addresses that were found. `staleUntilMs`: the time until which these addresses may be
   * used if no server can answer.
   */
  found: Resolved | undefined
  staleUntilMs = 0
  /** Callers that wait for the lookup under way. */
  waiting: ((resolved: Resolved) => void)[] | undefined

  constructor(name: string) {
    this.name = name
  }

  hasStale(nowMs: number): boolean {
    return this.found !== undefined && nowMs < this.staleUntilMs
  }
}

/** A lookup of one name. It asks two questions at once: for IPv4 addresses and for IPv6 addresses. */
class Lookup {
  readonly known: KnownName
  readonly startedMs: number
  readonly addresses: string[] = []
  ttlMs = Infinity
  /** The error codes of the questions that gave no addresses. */
  readonly codes: string[] = []
  pending = 2
  /**
   * True once the waiting callers have their answer. Answers from DNS that come later go to the cache only.
   */
  isOver = false
  timer: NodeJS.Timeout | undefined

  constructor(known: KnownName, startedMs: number) {
    this.known = known
    this.startedMs = startedMs
  }

  /**
   * The code of a failed lookup. `ENODATA` means that a name has no addresses of one family. Many names have
   * addresses of the other family only. So `ENODATA` is the code of the lookup only if the questions for both
   * families were answered. If one question has no answer yet, the code is `ETIMEOUT` instead.
   */
  get failure(): string {
    if (this.codes.includes('ENOTFOUND')) return 'ENOTFOUND'
    const code = this.codes.find((each) => each !== 'ENODATA')
    return code ?? (this.pending > 0 ? 'ETIMEOUT' : 'ENODATA')
  }
}

function answerAll(known: KnownName, answer: Resolved): void {
  const { waiting = [] } = known
  known.waiting = undefined
  for (const answered of waiting) answered(answer)
}

class CachingResolver implements NameResolver {
  readonly #servers: readonly string[]
  readonly #onLookup: (outcome: LookupOutcome, durationMs: number) => void
  readonly #now: () => number
  readonly #hosts: HostsFile
  readonly #resolvConf: FollowedFile | undefined
  readonly #maxNames: number
  /**
   * Known names. The name that was least recently asked for comes first. When there are too many names, the
   * first name is dropped.
   */
  readonly #names = new Map<string, KnownName>()
  /** Names that wait for their turn to be looked up. */
  readonly #line: KnownName[] = []
  #begunInBurst = 0
  #nextBurst: NodeJS.Timeout | undefined
  #client: DnsClient

  constructor({
    servers = [],
    hostsPath = '/etc/hosts',
    maxNames = 10_000,
    onLookup = () => undefined,
    now = () => performance.now(),
  }: ResolverOptions) {
    this.#servers = servers
    this.#onLookup = onLookup
    this.#now = now
    this.#maxNames = maxNames
    this.#hosts = new HostsFile(hostsPath, now)
    this.#resolvConf = servers.length === 0 ? new FollowedFile('/etc/resolv.conf', now) : undefined
    this.#resolvConf?.hasChanged()
    this.#client = this.#createClient()
  }

  resolve(name: string, answered: (resolved: Resolved) => void): void {
    const plain = name.endsWith('.') ? name.slice(0, -1) : name
    const addresses = this.#hosts.addressesOf(plain) ?? (isLoopbackName(plain) ? loopback : undefined)
    if (addresses !== undefined) {
      answered({ ok: true, addresses })
      return
    }
    const known = this.#knownName(plain)
    if (known.answer !== undefined && this.#now() < known.untilMs) {
      answered(known.answer)
    } else if (known.waiting === undefined) {
      known.waiting = [answered]
      this.#queue(known)
    } else {
      known.waiting.push(answered)
    }
  }

  close(): void {
    clearTimeout(this.#nextBurst)
    this.#client.cancel()
    for (const known of this.#line.splice(0)) answerAll(known, { ok: false, code: 'ECANCELLED' })
  }

  /**
   * Replaces the client, unless `resolv.conf` names no server now: no file can be opened, or the file is
   * being written or was cut off. A new client would then ask this machine.
   */
  #replaceClient(): void {
    if (this.#resolvConf === undefined || namesServer(this.#resolvConf.path))
      this.#client = this.#createClient()
    else this.#resolvConf.checkAgain()
  }

  #createClient(): DnsClient {
    const client = new DnsClient(questionMs)
    if (this.#servers.length > 0) client.setServers(this.#servers)
    return client
  }

  #knownName(name: string): KnownName {
    let known = this.#names.get(name)
    if (known === undefined) {
      known = new KnownName(name)
      const oldest = this.#names.size < this.#maxNames ? undefined : this.#names.keys().next().value
      if (oldest !== undefined) this.#names.delete(oldest)
    } else {
      this.#names.delete(name)
    }
    this.#names.set(name, known)
    return known
  }

  #queue(known: KnownName): void {
    if (this.#begunInBurst === burst) {
      this.#line.push(known)
      return
    }
    this.#begunInBurst++
    this.#nextBurst ??= setTimeout(() => this.#beginBurst(), nextBurstMs)
    this.#lookUp(known)
  }

  #beginBurst(): void {
    const next = this.#line.splice(0, burst)
    this.#begunInBurst = next.length
    this.#nextBurst = next.length === 0 ? undefined : setTimeout(() => this.#beginBurst(), nextBurstMs)
    for (const known of next) this.#lookUp(known)
  }

  #lookUp(known: KnownName): void {
    // A client of c-ares reads `/etc/resolv.conf` only once, so a change of the file needs a new client.
    if (this.#resolvConf?.hasChanged() === true) this.#replaceClient()
    const nowMs = this.#now()
    const lookup = new Lookup(known, nowMs)
    this.#conclude(lookup, known.hasStale(nowMs) ? deadlineWithStaleMs : deadlineMs)
    const take = (error: NodeJS.ErrnoException | null, records: readonly RecordWithTtl[]): void =>
      this.#take(lookup, error, records)
    this.#client.resolve4(known.name, { ttl: true }, take)
    this.#client.resolve6(known.name, { ttl: true }, take)
  }

  #take(
    lookup: Lookup,
    error: NodeJS.ErrnoException | null,
    records: readonly RecordWithTtl[] | undefined = [],
  ): void {
    lookup.pending--
    if (error !== null) lookup.codes.push(error.code ?? error.name)
    const kept = records.length > maxAddresses ? records.slice(0, maxAddresses) : records
    for (const { address, ttl } of kept) {
      lookup.addresses.push(address)
      lookup.ttlMs = Math.min(lookup.ttlMs, ttl * 1000)
    }
    if (lookup.pending === 0) this.#end(lookup)
    else if (lookup.addresses.length > 0 && !lookup.isOver) this.#conclude(lookup, otherFamilyMs)
  }

  /**
   * Ends the lookup after `inMs`, with the answers that have come by then. If the process was suspended, and
   * no address has come, the lookup goes on for the time of one more question. This is necessary because the
   * timers run before the sockets are read, and c-ares then asks again.
   */
  #conclude(lookup: Lookup, inMs: number): void {
    clearTimeout(lookup.timer)
    const dueMs = performance.now() + inMs
    lookup.timer = setTimeout(() => {
      const wasSuspended = performance.now() - dueMs > suspendedMs
      if (wasSuspended && lookup.addresses.length === 0) this.#conclude(lookup, questionMs.timeout)
      else this.#end(lookup)
    }, inMs)
  }

  /**
   * Ends a lookup and answers the callers that wait for it. If an answer from DNS comes later, this method is
   * called once more, to put the answer into the cache.
   */
  #end(lookup: Lookup): void {
    clearTimeout(lookup.timer)
    const nowMs = this.#now()
    const { known, startedMs, isOver } = lookup
    if (isOver && lookup.addresses.length === 0) return
    const outcome = this.#learn(lookup, nowMs)
    if (isOver) return
    lookup.isOver = true
    this.#onLookup(outcome, nowMs - startedMs)
    if (known.answer !== undefined) answerAll(known, known.answer)
  }

  #learn({ known, addresses, ttlMs, failure }: Lookup, nowMs: number): LookupOutcome {
    if (addresses.length > 0) {
      known.found = { ok: true, addresses }
      known.untilMs = nowMs + Math.min(freshMs.most, Math.max(freshMs.least, ttlMs))
      known.staleUntilMs = known.untilMs + staleMs
      known.answer = known.found
      return 'found'
    }
    if (failure === 'ENOTFOUND' || failure === 'ENODATA') {
      known.found = undefined
      known.answer = { ok: false, code: failure }
      known.untilMs = nowMs + noSuchNameMs
      return 'not_found'
    }
    if (known.hasStale(nowMs)) {
      known.answer = known.found
      known.untilMs = nowMs + staleAgainMs
      return 'stale'
    }
    // c-ares reports a refused connection if it could not open a socket.
    const code = failure === 'ECONNREFUSED' ? (fileShortage() ?? failure) : failure
    known.answer = { ok: false, code }
    known.untilMs = nowMs + failureMs
    return 'failed'
  }
}
