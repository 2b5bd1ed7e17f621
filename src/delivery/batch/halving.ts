/**
 * The most requests that look for the messages because of which a batch was refused, beside the request with
 * the whole batch. Ten halvings lead from 1,000 messages to one, and take 20 requests.
 */
const mostRequests = 32

/**
 * The parts of a batch that are still to be sent to one hook. At first, it is the whole batch. If a part is
 * refused, its two halves are sent instead, until the messages are alone because of which it was refused.
 */
export class Halving<T> {
  /** The part that is sent last comes first. */
  readonly #parts: (readonly T[])[]
  #left = mostRequests

  constructor(all: readonly T[]) {
    this.#parts = all.length === 0 ? [] : [all]
  }

  /** Removes the part that is to be sent next, and returns it. */
  next(): readonly T[] | undefined {
    return this.#parts.pop()
  }

  /**
   * Puts the two halves of a refused part before all others, and returns true. Returns false if the part
   * can't be halved: it has only one message, or there were too many requests.
   */
  halve(part: readonly T[]): boolean {
    if (part.length < 2 || this.#left < 2) return false
    this.#left -= 2
    const middle = Math.ceil(part.length / 2)
    this.#parts.push(part.slice(middle), part.slice(0, middle))
    return true
  }

  /** Removes all parts that were not sent, and returns what is in them, in its order. */
  rest(): readonly T[] {
    return this.#parts.splice(0).toReversed().flat()
  }
}
