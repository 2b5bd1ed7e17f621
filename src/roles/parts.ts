import { within } from '../kafka/within.ts'

/** A part of a role that has been started. */
export type Part = {
  /** Stops the part in good order. */
  stop(): Promise<unknown> | void
  /** Ends at once what would outlive this process. */
  abandon?(): void
}

/**
 * How long a failed start may take to stop the parts that it had started, in milliseconds. Then the process
 * ends anyway.
 */
export const unwindMs = 2_500

/** The parts that a role has started. They stop in reverse order, since each may rely on those before it. */
export class Parts {
  readonly #parts: Part[] = []
  #stopping: Promise<void> | undefined

  /**
   * Adds a part that has just started, and returns it. If the role was stopped already, stops the part too
   * and throws.
   */
  add<T extends Part>(part: T): T {
    if (this.#stopping !== undefined) {
      this.#stopping = this.#stopping.then(() => stopAll([part]))
      throw new Error('a part was started after its role was stopped')
    }
    this.#parts.push(part)
    return part
  }

  /** Adds a function to call at the stop, in reverse order with the parts. */
  defer(stop: Part['stop']): void {
    this.add({ stop })
  }

  /**
   * Stops each part once all parts after it have stopped. A part that fails doesn't keep others from
   * stopping. Rejects at the end if one failed. Later calls return the promise of the first call.
   */
  stop(): Promise<void> {
    return (this.#stopping ??= stopAll(this.#parts))
  }

  /**
   * Stops the parts after a failed start, within seconds. Never rejects, since the error to report is the one
   * that made the start fail.
   */
  async unwind(): Promise<void> {
    await within(unwindMs, this.stop()).catch(() => undefined)
  }

  /** Ends at once what would outlive this process. */
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
