import type { Kafka, RetryOptions } from 'kafkajs'
import type { ReportedTroubles } from '../../http/login-error.ts'

/** What this folder has to know of a client. kafkajs doesn't expose the settings of a client. */
export type ClientNotes = {
  readonly retry: RetryOptions
  /** The addresses in `kafka.brokers`, as `host:port`. */
  readonly addresses: readonly string[]
  readonly troubles: ReportedTroubles
  readonly tellThrottle: (message: string, ms: number) => void
}

const notes = new WeakMap<Kafka, ClientNotes>()

export function noteClient(kafka: Kafka, noted: ClientNotes): void {
  notes.set(kafka, noted)
}

/** Returns `undefined` for a client that `createKafka` hasn't made. */
export function notesOf(kafka: Kafka): ClientNotes | undefined {
  return notes.get(kafka)
}
