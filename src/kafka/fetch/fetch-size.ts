import { afterLength } from '../wire/batch-layout.ts'
import type { BatchSizes } from '../wire/record-batch.ts'

/**
 * A broker collects this many bytes of records before it answers a fetch. After `fetchWaitMs` it answers with
 * fewer bytes. Records are collected because a fetch with a few records costs as much as a fetch with
 * hundreds. If the previous fetch brought no records, one record is enough.
 */
export const minFetchBytes = 16 * 1024

/**
 * How many bytes the next fetch of a partition asks for. At this number, a broker cuts off the last batch of
 * its answer, and the next fetch brings this batch again. In a backlog of batches of 90 KB, with a fixed
 * number of 128 KiB, each fourth byte would come in vain. The part of a batch that came says how large the
 * batch is. So the next fetch asks for this batch, for as many batches behind it as fit, and for the size of
 * the batch after them. It never asks for fewer bytes than the broker collects. Otherwise the broker would
 * wait for more, although the log has more.
 */
export class FetchSize {
  readonly #mostBytes: number
  #bytes: number

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
    this.#bytes = mostBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Asks for as much as is allowed, because nothing is known about the next batch. */
  reset(): void {
    this.#bytes = this.#mostBytes
  }

  /** Learns from the batches that end where the next fetch begins. */
  learn({ batches, bytes, largest, cut }: BatchSizes): void {
    const most = this.#mostBytes
    if (cut === 0 || cut > most) {
      this.reset()
      return
    }
    const usual = batches === 0 ? cut : bytes / batches
    const behind = Math.floor((most - cut) / usual) * Math.max(largest, cut)
    this.#bytes = Math.min(most, Math.max(minFetchBytes, cut + behind + afterLength))
  }
}
