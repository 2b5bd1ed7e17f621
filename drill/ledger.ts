import { contentOf, kinds } from '../demo/messages.ts'
import type { SourceId } from './fleet.ts'

/** A message that Kafka or the gateway has acknowledged. */
export type SentMessage = {
  id: string
  source: SourceId
  /** The time when the acknowledged request began, in epoch milliseconds. */
  sentMs: number
}

/** Counts and lists what the drill has sent, for the oracle and the report. */
export class Ledger {
  readonly acknowledged: SentMessage[] = []
  /**
   * Users of the source `shop` whose deletion was acknowledged. Sluice may drop their earlier messages, so
   * `acknowledged` doesn't contain these messages.
   */
  readonly deleted: string[] = []
  /** The number of requests that were repeated because they were not acknowledged. */
  repeatedSends = 0
  /** How often the gateway answered with each status. The status 0 counts requests that got no answer. */
  readonly answers = new Map<number, number>()
  /** What the gateway answered about messages that it left out of a batch, as JSON. One entry a batch. */
  readonly leftOut: string[] = []

  answered(status: number): void {
    this.answers.set(status, (this.answers.get(status) ?? 0) + 1)
  }
}

const eventKinds = kinds.filter((kind) => kind !== 'delete')

/**
 * Returns a message as a client sends it. `index` chooses the kind of the message, so that all kinds take
 * turns.
 */
export function messageOf(messageId: string, userId: string, index: number): object {
  const type = eventKinds[index % eventKinds.length] ?? 'track'
  const timestamp = new Date().toISOString()
  return { type, messageId, userId, timestamp, ...contentOf(type, userId, index) }
}
