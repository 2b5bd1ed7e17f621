import type { Gone, GoneRecord } from './gone-record.ts'
import type { FailureClock, Pause, PauseRecord, Resumption } from './pause-record.ts'

/** The offset of a record, and the time when it was written, by the clock of this process (`seenMs`). */
export type Seen = { readonly offset: number; readonly seenMs: number }

/**
 * A failure clock that was read from the topic. It says since when all URLs of a destination have failed.
 * `answeredMs`: the time of the last report which says that a URL of the destination has accepted a request.
 */
export type SeenClock = FailureClock & { readonly seenMs: number; readonly answeredMs: number }

/** An automatic pause, with the offset of its record. */
type SeenPause = Pause & Pick<Seen, 'offset'>

type SeenGone = Gone & Pick<Seen, 'offset'>

/** The end of an automatic pause, as a record of the topic `notices` reports it. */
export type SeenResumption = Resumption & Seen

/**
 * The automatic pauses in the records of the topic `notices` that this process has read so far. Processes
 * that have read the same records have the same content.
 */
export class PauseBook {
  readonly #clocks = new Map<string, SeenClock>()
  readonly #pauses = new Map<string, SeenPause>()
  readonly #resumptions = new Map<string, SeenResumption>()
  /** The hooks that have answered 410, by destination. */
  readonly #gone = new Map<string, Map<string, SeenGone>>()

  take(record: PauseRecord, seen: Seen): void {
    const { destinationId } = record
    switch (record.kind) {
      case 'clock':
        this.#takeClock(destinationId, record.content, seen)
        return
      case 'paused':
        set(this.#pauses, destinationId, record.content && { ...record.content, offset: seen.offset })
        return
      case 'resumed':
        set(this.#resumptions, destinationId, record.content && { ...record.content, ...seen })
    }
  }

  takeGone({ destinationId, hookId, content }: GoneRecord, offset: number): void {
    const hooks = this.#gone.get(destinationId) ?? new Map<string, SeenGone>()
    set(hooks, hookId, content && { ...content, offset })
    if (hooks.size === 0) this.#gone.delete(destinationId)
    else this.#gone.set(destinationId, hooks)
  }

  #takeClock(destinationId: string, clock: FailureClock | undefined, { seenMs }: Seen): void {
    // The time of the last success is kept, because the writer of this record may not have read the report of
    // that success yet.
    const answeredMs = this.#clocks.get(destinationId)?.answeredMs ?? 0
    set(this.#clocks, destinationId, clock && { ...clock, seenMs, answeredMs })
  }

  /** Call this when a report says that a URL of a destination has accepted a request. */
  answered(destinationId: string, seenMs: number): void {
    const clock = this.#clocks.get(destinationId)
    if (clock !== undefined) this.#clocks.set(destinationId, { ...clock, answeredMs: seenMs })
  }

  clock(destinationId: string): SeenClock | undefined {
    return this.#clocks.get(destinationId)
  }

  resumption(destinationId: string): SeenResumption | undefined {
    return this.#resumptions.get(destinationId)
  }

  /** Returns the last pause of a destination, even if it has ended. */
  lastPause(destinationId: string): Pause | undefined {
    return this.#pauses.get(destinationId)
  }

  /**
   * Returns the pause of a destination if it has not ended. A pause also counts as ended if the process that
   * decided it had not yet read the end of the destination's previous pause. In a mirrored topic, records
   * have other offsets than those that `readTo` was taken from. A `readTo` above the pause's own offset shows
   * this, and the order of the records then decides.
   */
  pauseOf(destinationId: string): Pause | undefined {
    const pause = this.#pauses.get(destinationId)
    return pause !== undefined && this.isAfterResumption(destinationId, pause) ? pause : undefined
  }

  /** Returns true if a destination was not resumed after the time of a record. */
  isAfterResumption(
    destinationId: string,
    { readTo, offset = readTo }: { readonly readTo: number; readonly offset?: number },
  ): boolean {
    return Math.min(readTo, offset) > (this.#resumptions.get(destinationId)?.offset ?? -1)
  }

  /**
   * Returns the hooks of a destination that are gone: they have answered 410, and the destination wasn't
   * resumed since. A hook whose content is another one now isn't gone any more, which this book doesn't know.
   */
  goneOf(destinationId: string): ReadonlyMap<string, Gone> {
    const hooks = this.#gone.get(destinationId)
    if (hooks === undefined) return none
    return new Map([...hooks].filter(([, gone]) => this.isAfterResumption(destinationId, gone)))
  }

  /** The hooks of each record about gone hooks that the topic has. */
  get knownGone(): readonly Pick<GoneRecord, 'destinationId' | 'hookId'>[] {
    return [...this.#gone].flatMap(([destinationId, hooks]) =>
      [...hooks.keys()].map((hookId) => ({ destinationId, hookId })),
    )
  }

  /** The pauses that have not ended, by destination. */
  get paused(): ReadonlyMap<string, Pause> {
    const pauses = [...this.#pauses.keys()].map((id) => [id, this.pauseOf(id)] as const)
    return new Map(pauses.flatMap(([id, pause]) => (pause === undefined ? [] : [[id, pause]])))
  }

  /**
   * The destinations with a failure clock, which says since when all URLs of a destination have failed.
   */
  get timed(): Iterable<string> {
    return this.#clocks.keys()
  }

  /** The kind and destination of each record about pauses that the topic has. */
  get known(): readonly Known[] {
    return [
      ...[...this.#clocks.keys()].map((destinationId): Known => ({ kind: 'clock', destinationId })),
      ...[...this.#pauses.keys()].map((destinationId): Known => ({ kind: 'paused', destinationId })),
      ...[...this.#resumptions.keys()].map((destinationId): Known => ({ kind: 'resumed', destinationId })),
    ]
  }
}

const none: ReadonlyMap<string, Gone> = new Map()

type Known = Pick<PauseRecord, 'kind' | 'destinationId'>

function set<T>(map: Map<string, T>, key: string, value: T | undefined): void {
  if (value === undefined) map.delete(key)
  else map.set(key, value)
}
