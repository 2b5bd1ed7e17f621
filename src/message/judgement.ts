import type { PropertyHeader } from './record-headers.ts'

/** A delivery that has waited on a retry topic, or that is replayed. */
export type WaitingDelivery = {
  readonly unit: number
  readonly sourceId: string
  /** The time when the delivery's message was first appended, in epoch milliseconds. */
  readonly firstSeenMs: number
  /** The property and the version of its value, if the delivery is an Identify with one property. */
  readonly property?: PropertyHeader | undefined
  readonly body: Buffer
  /** True if a server may still act on an earlier attempt of the delivery. */
  readonly isUncertain: boolean
}

/**
 * The decision about a delivery that has waited.
 *
 * - `superseded`: it is dropped, because a newer value of the property has been routed or will be routed.
 * - `suppressed`: it is dropped, because the user was deleted after the message came.
 * - `send`: it is sent.
 * - `send_current`: another message, with the present value, is sent instead. `messageId`, `body` and `since`
 *   belong to that message.
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
