import type { LeftOutReason } from './reasons.ts'
import type { TrackingKind } from './item.ts'

/** The calls that a request may be for. A closed list, since they label metrics. */
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
  /** A request was answered, `durationMs` after it had arrived in full. */
  answered(call: CallName, status: number, durationMs: number): void
  /** Kafka has acknowledged messages of a kind. */
  acknowledged(kind: TrackingKind, count: number): void
  /** Messages of a source were left out. `undefined`: no source is known. */
  leftOut(reason: LeftOutReason, count: number, sourceId: string | undefined): void
  /** Messages arrived while identical ones were in flight, and share their answer. */
  coalesced(count: number): void
  /** Whole numbers beyond 2^53 in a source's messages lost digits. */
  digitsLost(count: number, sourceId: string): void
  /** A bug showed up. */
  failed(error: unknown): void
}
