import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Indexing, IndexingEvents } from '../../delivery-log/indexing.ts'
import type { TopicTail } from '../../kafka/read/topic-tail.ts'

export type KeptIndexOptions = {
  /** Opens the index for writing. Calls `onFailed` when the index can't be written any more. */
  readonly start: (events: IndexingEvents, onFailed: (error: Error) => void) => Promise<Indexing>
  /** Starts to read the topic into the index, after the last record that the index has. */
  readonly read: (indexing: Indexing) => TopicTail
  readonly onIndexed: IndexingEvents['onIndexed']
  readonly log: Pick<Logger, 'info' | 'warn'>
}

/**
 * Limit on the bytes of records that wait to be written. When more bytes wait, fetching pauses until the
 * bytes that wait are at most half of this limit.
 */
export const maxHeldBytes = 16 * 1024 ** 2
const firstPauseMs = 1_000
const longestPauseMs = 60_000

type Session = { readonly indexing: Indexing; readonly tail: TopicTail }

/**
 * Keeps an index up to date. If the index can't be written, for example because the disk is full, it is
 * opened again and again until it can be written. Meanwhile the topic keeps the records, and the rest of the
 * process continues.
 */
export class KeptIndex {
  readonly #options: KeptIndexOptions
  readonly #stopping = new AbortController()
  #session: Session | undefined
  #opening: Promise<void> = Promise.resolve()
  #trouble: string | undefined
  #pauseMs = firstPauseMs

  constructor(options: KeptIndexOptions) {
    this.#options = options
  }

  /**
   * Opens the index. If the disk is full, tries again later, and doesn't reject. Rejects if opening fails for
   * another reason.
   */
  async start(): Promise<void> {
    try {
      await this.#open()
    } catch (error) {
      if (!isDiskFull(error)) throw error
      this.#opening = this.#openAgain(error)
    }
  }

  /** The reasons why the index isn't up to date, in words. */
  get troubles(): readonly string[] {
    const unread = this.#session?.tail.trouble
    const unwritten = this.#trouble ?? this.#session?.indexing.trouble
    return [
      ...(unread === undefined ? [] : [`the delivery log can not be read: ${unread}`]),
      ...(unwritten === undefined ? [] : [`the delivery log can not be written: ${unwritten}`]),
    ]
  }

  /** How far the index is behind the topic, in milliseconds. -1 while this isn't known. */
  get behindMs(): number {
    return this.#session?.tail.behindMs ?? -1
  }

  get heldBytes(): number {
    return this.#session?.indexing.heldBytes ?? 0
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#opening
    const session = this.#session
    this.#session = undefined
    await session?.tail.stop()
    await session?.indexing.stop()
  }

  async #open(): Promise<void> {
    const { start, read, onIndexed } = this.#options
    const events: IndexingEvents = {
      onTaken: () => {
        if (this.heldBytes <= maxHeldBytes / 2) this.#session?.tail.setFull(false)
      },
      onIndexed: (counts) => {
        this.#pauseMs = firstPauseMs
        onIndexed(counts)
      },
    }
    const indexing = await start(events, (error) => this.#failed(error))
    this.#session = { indexing, tail: read(indexing) }
  }

  #failed(error: Error): void {
    const session = this.#session
    this.#session = undefined
    if (session !== undefined) this.#opening = this.#openAgain(error, session.tail)
  }

  /**
   * Tries to open the index again and again, until it succeeds or the process stops. Never rejects. `first`
   * is the error with which the index has failed. `before` is the reader that filled the failed index. It is
   * stopped before the first try.
   */
  async #openAgain(first: unknown, before?: TopicTail): Promise<void> {
    const { log } = this.#options
    const { signal } = this.#stopping
    await before?.stop().catch(() => undefined)
    for (let error = first; ;) {
      this.#trouble = messageOf(error)
      const pauseMs = this.#pauseMs
      this.#pauseMs = Math.min(2 * pauseMs, longestPauseMs)
      log.warn(
        { reason: this.#trouble, againMs: pauseMs },
        'the index of the delivery log can not be written: trying again; the topic keeps the records meanwhile',
      )
      await delay(pauseMs, undefined, { signal }).catch(() => undefined)
      if (signal.aborted) return
      try {
        await this.#open()
        this.#trouble = undefined
        log.info({}, 'the delivery log is being indexed again')
        return
      } catch (again) {
        error = again
      }
    }
  }
}

/** Returns true if an error of SQLite or of the file system says that the disk is full. */
function isDiskFull(error: unknown): boolean {
  const text = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return /disk is full|ENOSPC/.test(messageOf(text))
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
