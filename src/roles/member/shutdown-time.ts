import { within } from '../../async/within.ts'

/**
 * The part of the shutdown timeout that is reserved for the last commit and for leaving the group, in
 * milliseconds.
 */
export const leaveMs = 1_000

/** The time within which a member has to stop. The member's parts share this time. */
export class ShutdownTime {
  readonly #timeoutMs: number
  #untilMs: number | undefined

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /**
   * Waits for the promise `work` until only the time for leaving the group remains. Returns false if `work`
   * isn't done by then.
   */
  async drained(work: Promise<unknown>): Promise<boolean> {
    const deadlineMs = performance.now() + this.#timeoutMs
    const isDone = await within(Math.max(0, this.#timeoutMs - leaveMs), work)
    this.#untilMs = Math.max(deadlineMs, performance.now() + leaveMs)
    return isDone
  }

  /**
   * Waits for the promise `work` until the time to stop is over. Returns false if `work` isn't done by then.
   */
  within(work: Promise<unknown>): Promise<boolean> {
    this.#untilMs ??= performance.now() + leaveMs
    return within(Math.max(0, this.#untilMs - performance.now()), work)
  }
}
