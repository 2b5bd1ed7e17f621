import { isIP, type LookupFunction } from 'node:net'
import type { buildConnector } from 'undici'

/**
 * Finds the addresses of a name that may be connected to, and passes one or more addresses, or an error, to
 * the callback `found`.
 */
export type Addressing = (
  name: string,
  found: (error: Error | null, addresses: readonly string[]) => void,
) => void

/**
 * What a connector gets to know of a connection. `addresses`: the addresses of the host, if it has a name.
 */
export type DialOptions = buildConnector.Options & {
  readonly addresses?: HostAddresses | undefined
  readonly lookup?: LookupFunction
}

/** A connector of undici that knows the addresses of the host. */
export type Connector = (options: DialOptions, callback: buildConnector.Callback) => void

/**
 * While connections are in use, their name is looked up again after this time in milliseconds. The resolver
 * has a cache, so DNS is asked only if the TTL has passed.
 */
const lookAgainMs = 5_000

/**
 * A hook is busy if it gets this number of requests or more within `windowMs` (milliseconds). Only a busy
 * hook has connections to several addresses at once. The other hooks have a single connection, and each new
 * one goes to the next address. Otherwise thousands of quiet hooks would have several idle connections each.
 */
const busyRequests = 8
const windowMs = 10_000

/**
 * If an address of a busy hook has got this number of requests less than another one, a connection to it is
 * opened.
 */
const lagToOpen = 8
/**
 * The largest lag that is caught up. An address that is new, or that could not be reached for a while, must
 * not get all requests until it has as many as the others.
 */
const mostLag = 16
/**
 * Limit on the addresses to which a busy hook has connections from one process. They are chosen at random.
 */
const mostShared = 8

/**
 * If a connection that was meant for an address ends at another address, or fails, the address comes last for
 * this time in milliseconds. The time doubles with each further failure.
 */
const avoidedMs = { first: 60_000, most: 600_000 }

type Avoided = { readonly untilMs: number; readonly forMs: number }

/**
 * The present addresses of one hook's host, and how the hook's requests are shared among them. A connection
 * is bound to an address when it opens. This class says when that address doesn't belong to the name any
 * more, and which address the next connection should have.
 */
export class HostAddresses {
  readonly #name: string
  readonly #addressing: Addressing
  readonly #now: () => number
  /** The addresses of the last answer. Empty before the first answer. */
  #present: readonly string[] = []
  /** Those of `#present` that get requests as long as they can be reached. */
  #shared: readonly string[] = []
  /** The number of requests of each address in `#shared`. */
  #requests: Map<string, number> | undefined
  #mostRequests = 0
  #avoided: Map<string, Avoided> | undefined
  #lookAgainAtMs = 0
  /** The beginning of the present window, and the number of requests in it and in the one before. */
  #windowFromMs = 0
  #inWindow = 0
  #inWindowBefore = 0

  constructor(name: string, addressing: Addressing, now: () => number = () => performance.now()) {
    this.#name = name
    this.#addressing = addressing
    this.#now = now
  }

  /**
   * Looks the name up again if it is time. If the lookup fails, or finds no address that may be connected to,
   * the last answer stays valid for the open connections.
   */
  lookAgain(): void {
    const nowMs = this.#now()
    if (nowMs < this.#lookAgainAtMs) return
    this.#lookAgainAtMs = nowMs + lookAgainMs
    this.#addressing(this.#name, (error, addresses) => {
      if (error === null) this.#learn(addresses)
    })
  }

  /** Returns true if an address is one of the name, as far as is known. */
  has(address: string | undefined): boolean {
    return address !== undefined && this.#present.includes(address)
  }

  /** Returns true while the hook is busy and its name has several addresses. */
  get areShared(): boolean {
    return this.#shared.length > 1 && Math.max(this.#inWindow, this.#inWindowBefore) >= busyRequests
  }

  /**
   * Returns true if the requests of the first address are fewer than those of the second. Both are addresses
   * of open connections.
   */
  isLess(first: string | undefined, second: string | undefined): boolean {
    return this.#requestsOf(first) < this.#requestsOf(second)
  }

  /**
   * Returns true if a connection to another address should be opened for the next request, although there is
   * a free connection to `address`.
   */
  isAnotherDue(address: string | undefined): boolean {
    const nowMs = this.#now()
    const few = this.#requestsOf(address) - lagToOpen
    return this.#shared.some((other) => !this.#isAvoided(other, nowMs) && this.#requestsOf(other) <= few)
  }

  /** Counts a request on an open connection. */
  requested(address: string | undefined): void {
    if (this.#shared.length < 2 || address === undefined) return
    const nowMs = this.#now()
    if (nowMs - this.#windowFromMs >= windowMs) {
      this.#inWindowBefore = nowMs - this.#windowFromMs < 2 * windowMs ? this.#inWindow : 0
      this.#inWindow = 0
      this.#windowFromMs = nowMs
    }
    this.#inWindow++
    this.#count(address, this.#requestsOf(address) + 1)
  }

  /**
   * Takes the answer of a lookup, and returns its addresses in the order in which a new connection should try
   * them.
   */
  inOrder(addresses: readonly string[]): readonly string[] {
    this.#learn(addresses)
    const nowMs = this.#now()
    const placeOf = (address: string): number => {
      if (this.#isAvoided(address, nowMs)) return Infinity
      return this.#shared.includes(address) ? this.#requestsOf(address) : this.#mostRequests + 1
    }
    return shuffled(addresses).toSorted((a, b) => compare(placeOf(a), placeOf(b)))
  }

  /**
   * Counts the request for which a connection is opened. `address`: the one that is tried first. What the
   * address lags behind counts as caught up. So further requests don't open connections while this one opens.
   */
  dialling(address: string): void {
    if (this.#shared.length < 2) return
    this.#count(address, Math.max(this.#mostRequests, this.#requestsOf(address) + 1))
  }

  /**
   * Takes the result of opening a connection. `address`: the address that was tried first. `reached`: the
   * address of the open connection, or `undefined` if the connection failed.
   */
  dialled(address: string, reached: string | undefined): void {
    if (this.#shared.length < 2) return
    if (address === reached) {
      this.#avoided?.delete(address)
      return
    }
    const forMs = Math.min(avoidedMs.most, 2 * (this.#avoided?.get(address)?.forMs ?? avoidedMs.first / 2))
    const nowMs = this.#now()
    this.#avoided ??= new Map()
    this.#avoided.set(address, { untilMs: nowMs + forMs, forMs })
    // If all addresses fail, none is better than another.
    if (this.#shared.every((each) => this.#isAvoided(each, nowMs))) this.#avoided.clear()
  }

  #learn(addresses: readonly string[]): void {
    this.#lookAgainAtMs = this.#now() + lookAgainMs
    if (hasSame(this.#present, addresses)) return
    this.#present = addresses
    const all = dialledFirst(addresses)
    const kept = this.#shared.filter((address) => all.includes(address))
    const added = shuffled(all.filter((address) => !kept.includes(address)))
    this.#shared = [...kept, ...added].slice(0, mostShared)
    for (const known of [this.#requests, this.#avoided])
      for (const address of known?.keys() ?? []) if (!this.#shared.includes(address)) known?.delete(address)
  }

  #requestsOf(address: string | undefined): number {
    const counted = address === undefined ? undefined : this.#requests?.get(address)
    return Math.max(counted ?? 0, this.#mostRequests - mostLag)
  }

  #count(address: string, requests: number): void {
    this.#requests ??= new Map()
    this.#requests.set(address, requests)
    this.#mostRequests = Math.max(this.#mostRequests, requests)
  }

  #isAvoided(address: string, nowMs: number): boolean {
    return nowMs < (this.#avoided?.get(address)?.untilMs ?? 0)
  }
}

/** Returns the addresses of a URL's host. Returns `undefined` if the host is itself an address. */
export function hostAddressesOf(origin: string, addressing: Addressing): HostAddresses | undefined {
  const { hostname } = new URL(origin)
  const isAddress = hostname.startsWith('[') || isIP(hostname) !== 0
  return isAddress ? undefined : new HostAddresses(hostname, addressing)
}

/** Returns the addresses of the family that is tried first: IPv4, if there is an IPv4 address. */
function dialledFirst(addresses: readonly string[]): readonly string[] {
  const ipv4 = addresses.filter((address) => !isIpv6(address))
  return ipv4.length > 0 ? ipv4 : addresses
}

export function isIpv6(address: string): boolean {
  return address.includes(':')
}

/** Returns the items in random order. */
export function shuffled<T>(items: readonly T[]): readonly T[] {
  if (items.length < 2) return items
  return items
    .map((item) => ({ item, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item)
}

/** Compares two numbers, which may both be infinite. */
function compare(a: number, b: number): number {
  return a === b ? 0 : a - b
}

/** Returns true if both lists have the same items, in any order. */
function hasSame(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((item) => b.includes(item)))
}
