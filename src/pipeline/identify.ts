import type { PropertyHeader } from '../message/property-header.ts'

// The messages that Sluice delivers although they don't come from `events`.

/** An Identify with one property of a user. A record of `memberships` has caused this Identify. */
export type IdentifyToDeliver = PropertyHeader & {
  readonly kind: 'identify'
  readonly messageId: string
  /** The canonical body, in a buffer of its own and not in the buffer of a fetch. */
  readonly body: Buffer
  /**
   * True if a newer value is known, but a previous owner may have sent this value, so that a server may still
   * act on it. Such an Identify isn't sent at once. It waits on the first rung, and then Sluice decides what
   * to send.
   */
  readonly isSuperseded?: boolean
}

/**
 * The `delete` messages of a deletion request, one for each affected source. Each message has its own id and
 * body, because a receiver may get several of these messages.
 */
export type DeleteToDeliver = {
  readonly userId: string
  readonly deletes: readonly {
    readonly sourceId: string
    readonly messageId: string
    /** The canonical body, in a buffer of its own and not in the buffer of a fetch. */
    readonly body: Buffer
  }[]
}

/**
 * The reason why a delivery ended without another attempt. `superseded`: a newer value of its property is
 * known. `suppressed`: its user was deleted.
 */
export type DropReason = 'superseded' | 'suppressed'
