import type { LeftOutReason } from './reasons.ts'
import type { TrackingKind } from './item.ts'

/** The calls that a request may be for. The list is closed, because the calls are labels of metrics. */
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
  'other',
] as const
export type CallName = (typeof calls)[number]

/** Receives events about requests and messages, without their content. */
export type GatewayObserver = {
  /** Called when a request was answered, `durationMs` after it had arrived in full. */
  answered(call: CallName, status: number, durationMs: number): void
  /** Called when Kafka has acknowledged messages of a kind. */
  acknowledged(kind: TrackingKind, count: number): void
  /** Called when messages of a source were left out. `sourceId` is `undefined` if no source is known. */
  leftOut(reason: LeftOutReason, count: number, sourceId: string | undefined): void
  /**
   * Called when messages were not written because identical messages were in flight. The messages get the
   * same outcome as those in flight.
   */
  coalesced(count: number): void
  /** Called when whole numbers beyond 2^53 in a source's messages lost digits. */
  digitsLost(count: number, sourceId: string): void
  /** Called when a bug in the gateway showed up. */
  failed(error: unknown): void
}
