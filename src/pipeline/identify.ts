import type { PropertyHeader } from '../retry/carried.ts'

/**
 * What is delivered without having been a message of `events`, and what is asked of it before it is delivered
 * late.
 */

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

/** A delivery that has waited on a retry topic, or is replayed. */
export type Waiting = {
  readonly unit: number
  readonly sourceId: string
  /** When its message was appended first, in epoch milliseconds. */
  readonly firstSeenMs: number
  readonly property?: PropertyHeader
  readonly body: Buffer
  readonly isUncertain: boolean
}

/**
 * What becomes of it. `superseded`: a newer value of the property was, or will be, routed. `suppressed`: its
 * user was deleted after it came. `send_current`: the present value goes in its place, with its version.
 */
export type Judgement =
  | { readonly kind: 'send' }
  | { readonly kind: 'superseded' }
  | { readonly kind: 'suppressed' }
  | {
      readonly kind: 'send_current'
      readonly messageId: string
      readonly body: Buffer
      readonly since: string
    }

/** Why a delivery ended without an attempt to make it. */
export type DropReason = 'superseded' | 'suppressed'
