import { contentOf, kinds } from '../demo/messages.ts'
import type { SourceId } from './fleet.ts'

/** A message that Kafka has, by its own word or the gateway's. */
export type SentMessage = {
  id: string
  source: SourceId
  /** When the request began that was acknowledged, in epoch milliseconds. */
  sentMs: number
}

/** What was sent of events, and all that the oracle asks for at the end. */
export class Ledger {
  readonly acknowledged: SentMessage[] = []
  /** Users whose deletion was acknowledged, of the source `shop`: what was sent of them before may be dropped. */
  readonly deleted: string[] = []
  /** Requests that were made again, since they were not acknowledged. */
  repeatedSends = 0
  /** Of the gateway, by status; 0 for none. */
  readonly answers = new Map<number, number>()
  /** Messages that the gateway left out of a batch, in its words. */
  readonly leftOut: string[] = []

  answered(status: number): void {
    this.answers.set(status, (this.answers.get(status) ?? 0) + 1)
  }
}

const eventKinds = kinds.filter((kind) => kind !== 'delete')

/** A message as a client sends it: of all kinds in turn. */
export function messageOf(messageId: string, userId: string, index: number): object {
  const type = eventKinds[index % eventKinds.length] ?? 'track'
  const timestamp = new Date().toISOString()
  return { type, messageId, userId, timestamp, ...contentOf(type, userId, index) }
}
