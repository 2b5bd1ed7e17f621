import type { Logger } from 'pino'
import type { Destination } from '../../catalog/catalog.ts'
import type { DestinationDefinition } from '../../delivery/endpoint.ts'
import { hookContentsOf } from '../../delivery/hook-content.ts'
import type { Gone, GoneRecord } from '../../notices/gone-record.ts'
import type { PauseBook } from '../../notices/pause-book.ts'

/** The time after which a record is written again that the topic doesn't have, in milliseconds. */
const againAfterMs = 15_000

type Own = { readonly record: GoneRecord & { readonly content: Gone }; triedMs: number }

export type GoneHooksOptions = {
  readonly log: Pick<Logger, 'warn' | 'debug'>
  /** Returns epoch milliseconds. */
  readonly now: () => number
}

/**
 * The hooks that have answered 410 (Gone). This process knows those that it has found itself at once, and
 * writes a record about each, by which all processes know it. If the record can't be written, only this
 * process knows of it, and each other one finds it out by one request.
 */
export class GoneHooks {
  readonly #options: GoneHooksOptions
  readonly #own = new Map<string, Own>()
  #book: PauseBook | undefined
  #write: ((record: GoneRecord) => Promise<void>) | undefined

  constructor(options: GoneHooksOptions) {
    this.#options = options
  }

  /** Sets the function that writes a record to the topic `notices`. */
  connect(write: (record: GoneRecord) => Promise<void>): void {
    this.#write = write
  }

  /**
   * Takes a hook that has answered 410. `definition`: the destination as it was when the request was made.
   * `readTo`: the offset up to which this process has read the topic. Returns true if that is news.
   */
  add(
    definition: DestinationDefinition,
    hookId: string,
    { lastOutcome, readTo }: Pick<Gone, 'lastOutcome' | 'readTo'>,
  ): boolean {
    const content = hookContentsOf(definition).get(hookId)
    if (content === undefined || this.#contentOf(definition.id, hookId) === content) return false
    const gone = { content, atMs: this.#options.now(), lastOutcome, readTo }
    const own: Own = { record: { destinationId: definition.id, hookId, content: gone }, triedMs: -Infinity }
    this.#own.set(keyOf(own.record), own)
    this.#options.log.warn(
      { destination: definition.id, hook: hookId, outcome: lastOutcome },
      'a URL is gone: it gets no more requests until it is edited, or its destination is resumed',
    )
    void this.#tell(own)
    return true
  }

  /** Takes what the topic says now. */
  take(book: PauseBook): void {
    this.#book = book
    for (const [key, own] of this.#own) {
      const { destinationId, hookId, content } = own.record
      const isKnown = book.goneOf(destinationId).get(hookId)?.content === content.content
      if (isKnown || !book.isAfterResumption(destinationId, content)) this.#own.delete(key)
      else void this.#tell(own)
    }
  }

  /** The ids of the destinations of which a hook may be gone. */
  get destinationIds(): ReadonlySet<string> {
    const own = [...this.#own.values()].map(({ record }) => record)
    return new Set([...own, ...(this.#book?.knownGone ?? [])].map(({ destinationId }) => destinationId))
  }

  /** Returns the hooks of a destination that are gone, by their present contents. */
  of(destination: Destination): readonly string[] {
    if (this.#own.size === 0 && (this.#book?.goneOf(destination.id).size ?? 0) === 0) return none
    return [...hookContentsOf(destination)].flatMap(([hookId, content]) =>
      this.#contentOf(destination.id, hookId) === content ? [hookId] : [],
    )
  }

  #contentOf(destinationId: string, hookId: string): string | undefined {
    const own = this.#own.get(keyOf({ destinationId, hookId }))
    return (own?.record.content ?? this.#book?.goneOf(destinationId).get(hookId))?.content
  }

  async #tell(own: Own): Promise<void> {
    const { now, log } = this.#options
    const nowMs = now()
    if (this.#write === undefined || Math.abs(nowMs - own.triedMs) < againAfterMs) return
    own.triedMs = nowMs
    try {
      await this.#write(own.record)
    } catch (error) {
      log.debug({ err: error }, 'other workers are not told of a gone URL, trying again')
    }
  }
}

const none: readonly string[] = []

function keyOf({ destinationId, hookId }: Pick<GoneRecord, 'destinationId' | 'hookId'>): string {
  return JSON.stringify([destinationId, hookId])
}
