/**
 * The order of the records of one destination. `fresh`: new messages. `front`: new messages that left their
 * lane later than others joined the queue, and so go before them. `retry` and `backfill`: due retries and
 * deliveries of replays, which have turns of their own.
 */
export type QueueClass = 'fresh' | 'front' | 'retry' | 'backfill'

export const queueClasses: readonly QueueClass[] = ['fresh', 'front', 'retry', 'backfill']

/** The code of a record that belongs to nobody, such as a record that was written twice. */
export const noCode = 0

/**
 * Gives each destination a number, and each class of its records a code. The numbers are this process's own.
 */
export class Owners {
  readonly #numbers = new Map<string, number>()
  readonly #ids: string[] = ['']

  /** Returns the code of a class of a destination's records. It is above 0. */
  codeOf(destinationId: string, queueClass: QueueClass): number {
    let number = this.#numbers.get(destinationId)
    if (number === undefined) {
      number = this.#ids.length
      this.#ids.push(destinationId)
      this.#numbers.set(destinationId, number)
    }
    return number * queueClasses.length + queueClasses.indexOf(queueClass)
  }

  /** Returns the code like `codeOf`, or `undefined` if the destination has never had a record. */
  knownCodeOf(destinationId: string, queueClass: QueueClass): number | undefined {
    const number = this.#numbers.get(destinationId)
    return number && number * queueClasses.length + queueClasses.indexOf(queueClass)
  }

  destinationOf(code: number): string {
    return this.#ids[Math.floor(code / queueClasses.length)] ?? ''
  }

  classOf(code: number): QueueClass {
    return queueClasses[code % queueClasses.length] ?? 'fresh'
  }
}
