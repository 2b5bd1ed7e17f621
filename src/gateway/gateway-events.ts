import type { LeftOutReason } from './reasons.ts'
import type { TrackingKind } from './item.ts'

/** What a request was for. Closed: it labels metrics. */
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

/** Told what happens to requests and messages; nothing of their content. */
export type GatewayObserver = {
  /** A request was answered, so long after it had come as a whole. */
  answered(call: CallName, status: number, durationMs: number): void
  /** Messages of a kind are in Kafka. */
  acknowledged(kind: TrackingKind, count: number): void
  /** Messages of a source (`undefined`: of none) were left out. */
  leftOut(reason: LeftOutReason, count: number, sourceId: string | undefined): void
  /** Messages came while an identical one was in flight, and are answered with it. */
  coalesced(count: number): void
  /** Whole numbers beyond 2^53 in what a source sent lost digits. */
  digitsLost(count: number, sourceId: string): void
  /** Something that must not happen. */
  failed(error: unknown): void
}
