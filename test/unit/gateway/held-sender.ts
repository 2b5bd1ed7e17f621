import { vi } from 'vitest'
import type { Produce, ProduceSender } from '../../../src/gateway/outbox/outbox.ts'
import type { OutgoingRecord } from '../../../src/gateway/outbox/parcel.ts'

/**
 * The outcome of a send, for all its produces or for one partition. `undefined` is a success, and a text is
 * the reason of a failure.
 */
export type Outcome = string | undefined
type OnSettled = Parameters<ProduceSender['send']>[2]
type OnThrottled = Parameters<ProduceSender['send']>[3]

/** A stand-in for Kafka. It holds each send until the test settles it. */
export class HeldSender implements ProduceSender {
  readonly batches: {
    produces: readonly Produce[]
    route: string
    onSettled: OnSettled
    onThrottled: OnThrottled
  }[] = []

  send(
    produces: readonly Produce[],
    route: 'main' | 'isolated',
    onSettled: OnSettled,
    onThrottled: OnThrottled,
  ): void {
    this.batches.push({ produces, route, onSettled, onThrottled })
  }

  /** Reports that the broker of a send accepts nothing for a while, before or after the send was sent. */
  async throttle(index: number, throttleMs: number, { isSent }: { isSent: boolean }): Promise<void> {
    const { produces = [], onThrottled } = this.batches[index] ?? {}
    for (const produce of produces) onThrottled?.(produce, throttleMs, isSent)
    await vi.advanceTimersByTimeAsync(0)
  }

  recordsOf(index: number): OutgoingRecord['value'][] {
    return (this.batches[index]?.produces ?? []).flatMap(({ records }) => records.map(({ value }) => value))
  }

  /**
   * Ends a send, or the part of it that is for one partition. Then everything that waits for this goes on.
   */
  async settle(index: number, outcome: Outcome, partition?: number): Promise<void> {
    const { produces = [], onSettled } = this.batches[index] ?? {}
    for (const produce of produces) {
      if (partition === undefined || produce.partition === partition) onSettled?.(produce, outcome)
    }
    await vi.advanceTimersByTimeAsync(0)
  }
}
