import { setTimeout as wait } from 'node:timers/promises'
import { type AdminClient, NoAnswerError } from './admin-client.ts'

/** An attempt, as the admin API tells it (`LogRecord` of its description). */
export type LiveAttempt = {
  readonly at: string
  readonly destination: string | null
  readonly hook: string | null
  readonly source: string | null
  readonly messageId: string | null
  readonly messageType: string | null
  readonly origin: { readonly topic: string; readonly partition: number; readonly offset: number }
  readonly attempt: number
  readonly verdict: string | null
  readonly outcome: string | null
  readonly status: number | null
  readonly durationMs: number | null
  readonly error: string | null
  readonly replay: string | null
  readonly answer: string | null
}

/** What a feed tells. `lost`: the API doesn't answer, and the feed tries again. `back`: it answers again. */
export type FeedEvent =
  | { readonly kind: 'attempts'; readonly attempts: readonly LiveAttempt[] }
  | { readonly kind: 'lost'; readonly why: string }
  | { readonly kind: 'back' }
  /** There were more attempts than a feed reads at once: the oldest are left out. */
  | { readonly kind: 'left_out' }

export type FeedFilter = { readonly destination?: string | undefined; readonly source?: string | undefined }

export type FeedOptions = {
  readonly filter: FeedFilter
  readonly signal: AbortSignal
  /** How often the log is asked, in milliseconds. */
  readonly everyMs?: number
}

const usualEveryMs = 1_000
/**
 * How late a record may reach the index, in milliseconds, counted from its time. The index is usually a
 * second behind, and the clocks of workers differ.
 */
const lateMs = 15_000
const pageSize = 1_000
/** The most pages that are read at once. */
const mostPages = 10
const longestWaitMs = 15_000

/**
 * Yields the attempts from now on, in the order of their times. Asks the log for what is new, again and
 * again. After an interruption it goes on where it was. Ends when `signal` is aborted, and throws if the API
 * refuses what it is asked.
 */
export async function* pollFeed(
  client: AdminClient,
  { filter, signal, everyMs = usualEveryMs }: FeedOptions,
): AsyncGenerator<FeedEvent> {
  const recent = new RecentAttempts(Date.now())
  let failures = 0
  while (!signal.aborted) {
    try {
      const { attempts, isCut } = await newest(client, filter, recent.fromMs, signal)
      if (failures > 0) yield { kind: 'back' }
      failures = 0
      if (isCut) yield { kind: 'left_out' }
      const fresh = recent.take(attempts)
      if (fresh.length > 0) yield { kind: 'attempts', attempts: fresh }
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof NoAnswerError)) throw error
      if (failures === 0) yield { kind: 'lost', why: error.message }
      failures++
    }
    const waitMs = Math.min(everyMs * 2 ** Math.min(failures, 10), Math.max(everyMs, longestWaitMs))
    await wait(waitMs, undefined, { signal }).catch(() => undefined)
  }
}

async function newest(
  client: AdminClient,
  filter: FeedFilter,
  fromMs: number,
  signal: AbortSignal,
): Promise<{ attempts: LiveAttempt[]; isCut: boolean }> {
  const attempts: LiveAttempt[] = []
  let cursor: string | null = null
  for (let page = 0; page < mostPages; page++) {
    const body = {
      ...filter,
      kinds: ['attempted'],
      from: new Date(fromMs).toISOString(),
      limit: pageSize,
      ...(cursor !== null && { cursor }),
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the answer of our own API
    const found = (await client.ask('POST', '/v1/log/search', body, signal)) as Found
    attempts.push(...found.records)
    cursor = found.cursor
    if (cursor === null) break
  }
  return { attempts: attempts.toReversed(), isCut: cursor !== null }
}

type Found = { readonly records: readonly LiveAttempt[]; readonly cursor: string | null }

/** The attempts of the last seconds that were told already, so that each one is told once. */
export class RecentAttempts {
  readonly #startMs: number
  readonly #told = new Map<string, number>()
  #newestMs: number

  /** `startMs`: only attempts that were made after this time are told, in epoch milliseconds. */
  constructor(startMs: number) {
    this.#startMs = startMs
    this.#newestMs = startMs
  }

  /** From which time on the log has to be asked. */
  get fromMs(): number {
    return Math.max(this.#startMs, this.#newestMs - lateMs)
  }

  /** Returns those that weren't told yet, in the order of their times. */
  take(attempts: readonly LiveAttempt[]): readonly LiveAttempt[] {
    const fresh = attempts.filter((attempt) => {
      const key = keyOf(attempt)
      if (this.#told.has(key)) return false
      const atMs = Date.parse(attempt.at)
      this.#told.set(key, atMs)
      if (atMs > this.#newestMs) this.#newestMs = atMs
      return true
    })
    for (const [key, atMs] of this.#told) if (atMs < this.fromMs) this.#told.delete(key)
    return fresh.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at))
  }
}

function keyOf({ at, destination, hook, messageId, attempt, origin, replay }: LiveAttempt): string {
  const { topic, partition, offset } = origin
  return JSON.stringify([at, destination, hook, messageId, attempt, topic, partition, offset, replay])
}
