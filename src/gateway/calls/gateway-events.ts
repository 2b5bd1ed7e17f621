import type { ProblemCode } from './answer.ts'
import type { LeftOutReason } from '../messages/left-out-reasons.ts'
import type { TrackingKind } from '../messages/item.ts'

/**
 * The calls to which a request may belong. The list is fixed, because its entries are values of a metric
 * label.
 */
export const calls = [
  'identify',
  'track',
  'page',
  'screen',
  'group',
  'alias',
  'batch',
  'metrics',
  'deletions',
  'audience_changes',
  'settings',
  'pixel',
  'signing_keys',
  'other',
] as const
export type CallName = (typeof calls)[number]

/** Receives events about requests and messages. The events don't contain the content of messages. */
export type GatewayObserver = {
  /**
   * Called when a request was answered. `durationMs`: the time between its arrival in full and its answer.
   * `code`: the problem for which it was refused.
   */
  answered(call: CallName, status: number, durationMs: number, code?: ProblemCode): void
  /** Called when Kafka has acknowledged `count` messages of a kind. */
  acknowledged(kind: TrackingKind, count: number): void
  /** Called when messages of a source were left out. `sourceId` is `undefined` if no source is known. */
  leftOut(reason: LeftOutReason, count: number, sourceId: string | undefined): void
  /**
   * Called when messages were not written because identical messages were in flight. They have the same
   * outcome as the messages in flight.
   */
  coalesced(count: number): void
  /** Called when whole numbers beyond 2^53 in a source's messages lost digits. */
  digitsLost(count: number, sourceId: string): void
  /** Called when a client's new connection was closed at once, because there are too many connections. */
  connectionRefused(): void
  /** Called with the error when a request fails because of a bug in the gateway. */
  failed(error: unknown): void
}
