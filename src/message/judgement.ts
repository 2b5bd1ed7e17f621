import type { PropertyHeader } from './property-header.ts'

/** A delivery that has waited on a retry topic, or that is replayed. */
export type WaitingDelivery = {
  readonly unit: number
  readonly sourceId: string
  /** The time when the delivery's message was first appended, in epoch milliseconds. */
  readonly firstSeenMs: number
  /** The property of an Identify with one property, and the version of that property's value. */
  readonly property?: PropertyHeader | undefined
  readonly body: Buffer
  /** True if a server may still act on an earlier attempt of the delivery. */
  readonly isUncertain: boolean
}

/**
 * The decision about a waiting delivery. `superseded`: a newer value of the property has been routed, or will
 * be. `suppressed`: the user was deleted after the message came. `send_current`: the present value is sent
 * instead, in a message with the id, the body and the version (`since`) that are given here.
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
