import type { Change } from '../test/support/changing-group.ts'
import type { Delivery } from '../test/support/delivery-book.ts'
import type { WrongValue } from '../test/support/audience-upstream.ts'
import type { BackwardCommit } from './backward-commits.ts'
import type { SentMessage } from './ledger.ts'
import type { Happened } from './play.ts'

/** A record of the dead letters. `destination` and `messageId` are empty if the record isn't a delivery. */
export type DeadLetter = { destination: string; messageId: string; reason: string; detail: string }

/** A record of a retry topic, or of a queue. */
export type ParkedTry = {
  /** `destination/messageId` */
  key: string
  /**
   * The topic's wait, and the attempts and waits before the record. Two records of a delivery with the same
   * state are one record that was written twice. For a queue: its offset, and the tenure that appended it.
   */
  state: string
  /**
   * The outcome of the last attempt as the sender saw it: an HTTP status, or the reason why it got no answer.
   */
  outcome: string
  /**
   * The worker that wrote the record, and the time. `undefined` if it isn't known which worker owned the
   * partition at that time.
   */
  by: Try | undefined
}

/** The worker that sent a request for a message, and the time of the request. */
export type Try = Pick<Delivery, 'worker' | 'arrivedMs'>

/** The values that a customer with audiences has at the end. */
export type AudienceEvidence = {
  destination: string
  wrong: readonly WrongValue[]
  /** The values that arrived too long after the `delete` of their user, although they were older. */
  sentTooLate: readonly string[]
  /** The values that the customer still has, although they are older than the deletion of their user. */
  heldTooLong: readonly string[]
}

/**
 * The evidence for the oracle. It is gathered at the end of a drill, after all records are settled or the
 * time limit for that has passed.
 */
export type Evidence = {
  acknowledged: readonly SentMessage[]
  /** The accepted requests, by `destination/messageId`. */
  deliveries: ReadonlyMap<string, readonly Delivery[]>
  /** The refused requests, by `destination/messageId`. */
  refused: ReadonlyMap<string, readonly Try[]>
  deadLetters: readonly DeadLetter[]
  /** The message ids in the topic `events`. The ids of one partition are in the order of its offsets. */
  written: readonly string[]
  /** The records of the retry topics and of the queues. */
  parked: readonly ParkedTry[]
  /** Users of `shop` whose deletion was acknowledged. */
  deleted: readonly string[]
  /** `destination/source/user` of each `delete` that an endpoint accepted. */
  deletes: ReadonlySet<string>
  audiences: readonly AudienceEvidence[]
  signatures: { right: number; wrong: readonly string[] }
  leftOut: readonly string[]
  changes: readonly Change[]
  happened: readonly Happened[]
  /** The committed offsets that went back. The offsets were sampled every two seconds. */
  backwardCommits: readonly BackwardCommit[]
  /**
   * Texts about processes that ended by themselves, faults and traffic that did not end, workers that did not
   * come back, and processes that did not stop.
   */
  mishaps: readonly string[]
  /** Log lines that report a fault of Sluice itself. */
  ownFaults: readonly string[]
  /** The number of records that were not committed at the end. */
  lagLeft: number
}
