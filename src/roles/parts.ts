import { within } from '../kafka/within.ts'

/** Something that has been started. */
export type Part = {
  /** Ends it in good order. */
  stop(): Promise<unknown> | void
  /** Ends at once what would outlive this process. */
  abandon?(): void
}

/**
 * So long, in milliseconds, a start that has failed may take to stop what it had started. Then the process
 * ends all the same.
 */
export const unwindMs = 2_500

/** What a role has started. It stops in reverse: what was started last relies on what was there before. */
export class Parts {
  readonly #parts: Part[] = []
  #stopping: Promise<void> | undefined

  /**
   * Takes a part as soon as it is started, and gives it back. Where all has been stopped, the part is too,
   * and this throws.
   */
  add<T extends Part>(part: T): T {
    if (this.#stopping !== undefined) {
      this.#stopping = this.#stopping.then(() => stopAll([part]))
      throw new Error('a part was started after its role was stopped')
    }
    this.#parts.push(part)
    return part
  }

  /** The same for what has another word for stopping. */
  defer(stop: Part['stop']): void {
    this.add({ stop })
  }

  /**
   * Stops each part when the ones after it have stopped, once. A part that fails doesn't keep the others from
   * it: rejects in the end.
   */
  stop(): Promise<void> {
    return (this.#stopping ??= stopAll(this.#parts))
  }

  /**
   * The same within seconds, for a start that has failed. Never rejects: why it has failed is what is to be
   * told.
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
