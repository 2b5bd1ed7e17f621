import type { PropertyHeader } from '../message/property-header.ts'

/** What is delivered without having been a message of `events`. */

/** An Identify that tells one property of a user, as its record of `memberships` causes it. */
export type IdentifyToDeliver = PropertyHeader & {
  readonly kind: 'identify'
  readonly messageId: string
  /** Canonical, and kept: no slice of a fetch. */
  readonly body: Buffer
  /**
   * A newer value is known, but an owner before may have sent this one, and a server may act on it late: it
   * isn't sent, and waits on the first rung to be judged then.
   */
  readonly isSuperseded?: boolean
}

/** A `delete` for each affected source: they differ, since a receiver may get several. */
export type DeleteToDeliver = {
  readonly userId: string
  readonly deletes: readonly {
    readonly sourceId: string
    readonly messageId: string
    /** Canonical, and kept: no slice of a fetch. */
    readonly body: Buffer
  }[]
}

/** Why a delivery ended without an attempt to make it. */
export type DropReason = 'superseded' | 'suppressed'
