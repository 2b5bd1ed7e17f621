import { Address } from '../../address/address.ts'
import { type Rate, TokenBucket } from '../../async/token-bucket.ts'

/**
 * The time that the refused requests of one client of a source may take, in milliseconds: 5 in each second,
 * which is half a percent of a core, and 100 at once.
 */
const ofClient: Rate = { perSecond: 5, burst: 100 }
/** The time that the refused requests of all clients of a source may take. */
const ofSource: Rate = { perSecond: 20, burst: 400 }
/**
 * The most that is charged for a request, and for each byte of its body, in milliseconds. A request takes
 * more time only if it was interrupted, for example by the garbage collector.
 */
const mostMs = 0.1
const mostMsPerByte = 0.000_1
/** After this time without a charge, the budgets of a client are full again, in milliseconds. */
const watchedMs = 60_000
/** The limit on kept budgets. Above it, the budget that wasn't used for longest is dropped. */
const mostKept = 10_000

/**
 * The budgets of refused requests. Each refused request is charged, by the time that it has taken, to its
 * client and to its source. A client is an address, or the `/64` of an IPv6 address. Requests without a known
 * source have a budget together.
 *
 * While the budget of a client is used up, its requests to the same source are refused before they are read.
 * So neither the requests of the client to other sources are refused, nor those that others send from
 * elsewhere. While the budget of a source is used up, only those of its clients are refused that have been
 * charged themselves lately.
 */
export class RefusalBudgets {
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** The budgets, with the one that was used last at the end. */
  readonly #clients = new Map<string, TokenBucket>()
  readonly #sources = new Map<string, TokenBucket>()
  /**
   * When the networks were charged last, for whatever source. The one that was charged last is at the end.
   */
  readonly #chargedAtMs = new Map<string, number>()
  #lastChargedMs = -Infinity

  constructor(now: () => number) {
    this.now = now
  }

  /** False if no request has been refused lately. Then no request has to wait. */
  get isUsed(): boolean {
    return this.now() - this.#lastChargedMs < watchedMs
  }

  /** Returns true if a request of a client was charged lately, for whatever source. */
  isWatched(ip: string): boolean {
    const atMs = this.#chargedAtMs.get(networkOf(ip))
    return atMs !== undefined && this.now() - atMs < watchedMs
  }

  /**
   * Returns 0 if a request may be read. Otherwise returns the milliseconds until one may be read again.
   * `sourceId` is `undefined` if the head of the request names no source.
   */
  waitMs(ip: string, sourceId: string | undefined): number {
    const name = clientOf(ip, sourceId)
    const client = this.#clients.get(name)
    if (client === undefined) return 0
    const nowMs = this.now()
    if (client.isFull(nowMs)) {
      this.#clients.delete(name)
      return 0
    }
    const ownMs = client.take(nowMs, 0)
    if (ownMs > 0) return ownMs
    return this.#sources.get(sourceId ?? noSource)?.take(nowMs, 0) ?? 0
  }

  /** Charges a refused request that has taken `ms`. `bytes`: the length of its inflated body. */
  charge(ip: string, sourceId: string | undefined, { ms, bytes }: { ms: number; bytes: number }): void {
    const charged = Math.min(ms, mostMs + mostMsPerByte * bytes)
    const nowMs = this.now()
    this.#lastChargedMs = nowMs
    keepLast(this.#chargedAtMs, networkOf(ip), nowMs)
    chargeTo(this.#clients, clientOf(ip, sourceId), { ms: charged, rate: ofClient, nowMs })
    chargeTo(this.#sources, sourceId ?? noSource, { ms: charged, rate: ofSource, nowMs })
  }
}

/** No source has this id. */
const noSource = ''

function chargeTo(
  buckets: Map<string, TokenBucket>,
  name: string,
  { ms, rate, nowMs }: { readonly ms: number; readonly rate: Rate; readonly nowMs: number },
): void {
  const bucket = buckets.get(name) ?? new TokenBucket(rate, nowMs)
  bucket.take(nowMs, ms)
  keepLast(buckets, name, bucket)
}

/** Puts an entry at the end of a map. Drops the first entry if there are too many. */
function keepLast<T>(entries: Map<string, T>, name: string, value: T): void {
  entries.delete(name)
  entries.set(name, value)
  const [oldest] = entries.size > mostKept ? entries.keys() : []
  if (oldest !== undefined) entries.delete(oldest)
}

const scratch = new Address()
/** The number of groups of an IPv6 address that name a network. A host may use all addresses in it. */
const networkGroups = 4
const mappedGroups = 5

/** Returns the name of a client's budget. No address has a space in it. */
function clientOf(ip: string, sourceId: string | undefined): string {
  return `${networkOf(ip)} ${sourceId ?? noSource}`
}

function networkOf(ip: string): string {
  if (!ip.includes(':') || !scratch.read(ip)) return ip
  const { groups } = scratch
  const isMapped = groups.subarray(0, mappedGroups).every((group) => group === 0)
  return isMapped ? ip : groups.subarray(0, networkGroups).join(':')
}
