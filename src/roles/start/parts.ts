import { within } from '../../async/within.ts'

/** A part of a role that has been started. */
export type Part = {
  /** Stops the part, and lets it finish what it has begun. */
  stop(): Promise<unknown> | void
  /** Kills at once the processes that this part has forked. Absent if the part has forked none. */
  abandon?(): void
}

/**
 * How long it may take to stop the started parts after a failed start, in milliseconds. After this time the
 * process ends anyway.
 */
export const unwindMs = 2_500

/**
 * The parts that a role has started. The parts stop in reverse order, because a part may rely on parts that
 * were started earlier.
 */
export class Parts {
  readonly #parts: Part[] = []
  #stopping: Promise<void> | undefined

  /**
   * Adds a part that was started a moment ago, and returns it. If the role was stopped already, stops the
   * part too and throws.
   */
  add<T extends Part>(part: T): T {
    if (this.#stopping !== undefined) {
      this.#stopping = this.#stopping.then(() => stopAll([part]))
      throw new Error('a part was started after its role was stopped')
    }
    this.#parts.push(part)
    return part
  }

  /**
   * Adds a function that is called when the parts stop. Functions are called and parts are stopped in the
   * reverse of the order in which they were added.
   */
  defer(stop: Part['stop']): void {
    this.add({ stop })
  }

  /**
   * Stops the parts one after another, beginning with the part that was added last. If stopping a part fails,
   * the other parts are stopped nevertheless, and the promise rejects at the end. Later calls return the
   * promise of the first call.
   */
  stop(): Promise<void> {
    return (this.#stopping ??= stopAll(this.#parts))
  }

  /**
   * Stops the parts after a failed start, within seconds. Never rejects, because the error to report is the
   * error of the start.
   */
  async unwind(): Promise<void> {
    await within(unwindMs, this.stop()).catch(() => undefined)
  }

  /** Kills at once the processes that the parts have forked. */
  abandon(): void {
    for (const part of this.#parts) part.abandon?.()
  }
}

async function stopAll(parts: readonly Part[]): Promise<void> {
  const faults: unknown[] = []
  for (const part of parts.toReversed()) {
    try {
      await part.stop()
    } catch (fault) {
      faults.push(fault)
    }
  }
  if (faults.length === 1) throw faults[0]
  if (faults.length > 1) throw new AggregateError(faults, 'several parts could not be stopped')
}
