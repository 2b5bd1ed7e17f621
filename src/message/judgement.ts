import type { PropertyHeader } from './property-header.ts'

/** A delivery that has waited on a retry topic, or is replayed. */
export type WaitingDelivery = {
  readonly unit: number
  readonly sourceId: string
  /** When its message was appended first, in epoch milliseconds. */
  readonly firstSeenMs: number
  /** Of an Identify that tells one property: which, and the version of the value that it tells. */
  readonly property?: PropertyHeader | undefined
  readonly body: Buffer
  /** A server may still act on an earlier attempt of it. */
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
