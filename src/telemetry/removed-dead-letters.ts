import type { Logger } from 'pino'
import { PacedLines } from './paced-lines.ts'

type Line = { destination: string; deadLetters: number }

/** The shortest interval between two lines about the same destination, in milliseconds. */
const everyMs = 60_000
/**
 * Limit on the destinations whose dead letters are counted. The ids come from records, so they may be any
 * texts.
 */
const maxCounted = 1_000

/**
 * Counts the messages that become dead letters because the catalog lacks their destination, and says for each
 * destination how many there were so far.
 */
export class RemovedDeadLetters {
  readonly #counts = new Map<string, number>()
  readonly #lines: PacedLines<Line>

  constructor(log: Pick<Logger, 'warn'>) {
    // `leftOut` would repeat the count.
    const write = ({ destination, deadLetters }: Line): void =>
      log.warn({ destination, deadLetters }, message)
    this.#lines = new PacedLines({ write, everyMs })
  }

  add(destination: string): void {
    const deadLetters = (this.#counts.get(destination) ?? 0) + 1
    const [oldest] = this.#counts.keys()
    if (deadLetters === 1 && this.#counts.size >= maxCounted && oldest !== undefined)
      this.#counts.delete(oldest)
    this.#counts.set(destination, deadLetters)
    this.#lines.add(destination, { destination, deadLetters })
  }

  flush(): void {
    this.#lines.flush()
  }
}

const message =
  'the catalog has no such destination: so many messages for it have become dead letters in this process; to deliver them, put the destination back into the catalog, and replay its dead letters'
