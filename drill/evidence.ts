import type { Change } from '../test/support/changing-group.ts'
import type { Delivery } from '../test/support/delivery-book.ts'
import type { WrongValue } from '../test/support/audience-upstream.ts'
import type { BackwardCommit } from './backward-commits.ts'
import type { SentMessage } from './ledger.ts'
import type { Happened } from './play.ts'

/** A record of the dead letters; `destination` and `messageId` are empty where it isn't a delivery. */
export type DeadLetter = { destination: string; messageId: string; reason: string; detail: string }

/** A record of a retry topic. */
export type ParkedTry = {
  /** `destination/messageId` */
  key: string
  /** Attempts and waits before it: two records of a delivery with the same are one that was written twice. */
  state: string
  /** What the sender says of the last attempt: an HTTP status, or why it had no answer. */
  outcome: string
  /** Who wrote it and when; `undefined` if nobody is known to have owned its partition then. */
  by: Try | undefined
}

/** A request for a message, by whom and when. */
export type Try = Pick<Delivery, 'worker' | 'arrivedMs'>

/** What a customer of audiences has at the end. */
export type AudienceEvidence = {
  destination: string
  wrong: readonly WrongValue[]
  /** What came of a user after the `delete`, though it was older. */
  sentTooLate: readonly string[]
  /** What it still has of users, though it is older than their deletion. */
  heldTooLong: readonly string[]
}

/** All that is known when a drill is over, and everything has come to its end or was waited for long enough. */
export type Evidence = {
  acknowledged: readonly SentMessage[]
  /** By `destination/messageId`. */
  deliveries: ReadonlyMap<string, readonly Delivery[]>
  /** Requests that were refused before, by the same key. */
  refused: ReadonlyMap<string, readonly Try[]>
  deadLetters: readonly DeadLetter[]
  /** Ids of the topic `events`: those of a partition in the order in which they are there. */
  written: readonly string[]
  /** What was written to the retry topics. */
  parked: readonly ParkedTry[]
  /** Users of `shop` whose deletion was acknowledged, and `destination/source/user` of each `delete` that came. */
  deleted: readonly string[]
  deletes: ReadonlySet<string>
  audiences: readonly AudienceEvidence[]
  signatures: { right: number; wrong: readonly string[] }
  leftOut: readonly string[]
  changes: readonly Change[]
  happened: readonly Happened[]
  /** As seen every two seconds. */
  backwardCommits: readonly BackwardCommit[]
  /** Processes that ended though nobody ended them, and what did not end or come back as it should. */
  mishaps: readonly string[]
  /** Lines in which Sluice tells of a fault of its own. */
  ownFaults: readonly string[]
  /** Records that were not committed at the end. */
  lagLeft: number
}
