import { setTimeout as delay } from 'node:timers/promises'
import type { HeldRecord } from '../message/held-record.ts'
import type { WholeRecord } from '../message/records.ts'
import type { UnitQueueOptions } from './queue-options.ts'
import type { UnitIndex } from './unit-index.ts'
import { roomLookMs } from './wanted.ts'

type OldRecordsOptions = Pick<
  UnitQueueOptions,
  'unit' | 'topic' | 'reader' | 'maxAgeMs' | 'expire' | 'hasRoom' | 'owners' | 'partition' | 'onLost' | 'log'
> & {
  /** Returns false while no record may be taken out of the queue. */
  readonly mayTake: () => boolean
  /** Returns a record that was taken out of the queue. */
  readonly held: (record: WholeRecord) => HeldRecord
  readonly signal: AbortSignal
}

/** The age of the oldest record is looked at this often, in milliseconds. */
const everyMs = 10 * 60_000

/** Takes the oldest records of one unit out of the queue, before Kafka deletes them. */
export class OldRecords {
  readonly #options: OldRecordsOptions
  #lookedAtMs = -Infinity
  #isExpiring = false

  constructor(options: OldRecordsOptions) {
    this.#options = options
  }

  /**
   * Takes out the records that have waited for too long, if it is time to look for them. A million of them
   * may be due together, so each waits for room.
   */
  async expire(index: UnitIndex): Promise<void> {
    const { unit, mayTake, signal, log } = this.#options
    const nowMs = performance.now()
    if (this.#isExpiring || nowMs - this.#lookedAtMs < everyMs || !mayTake()) return
    this.#isExpiring = true
    try {
      await this.#takeOut(index)
      this.#lookedAtMs = nowMs
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error, unit }, 'the oldest messages of a queue can not be read')
    } finally {
      this.#isExpiring = false
    }
  }

  async #takeOut(index: UnitIndex): Promise<void> {
    const { unit, topic, reader, maxAgeMs, expire, owners, partition, mayTake, held, signal } = this.#options
    const latestMs = Date.now() - maxAgeMs()
    for (let from = index.head; from < index.end && mayTake();) {
      const { records, next } = await reader.piece({ topic, partition: unit, signal, from, to: index.end })
      for (const record of records) {
        while (!this.#hasRoom() && mayTake()) await delay(roomLookMs, undefined, { signal })
        if (record.timestampMs > latestMs || !mayTake()) return
        const code = index.takeAt(record.offset)
        if (code < 0) continue
        partition.lend()
        expire(held(record), record, owners.classOf(code))
      }
      from = Math.max(next, from + 1)
    }
  }

  #hasRoom(): boolean {
    return this.#options.hasRoom?.() !== false
  }

  /** Forgets the records that Kafka has deleted, those before `start`. */
  forget(index: UnitIndex, start: number): void {
    let lost = 0
    for (let offset = index.head; offset < Math.min(start, index.end); offset++) {
      if (index.isDone(offset) || !index.finishWaiting(offset)) continue
      lost++
    }
    if (lost === 0) return
    const { unit, onLost, log } = this.#options
    log.error(
      { unit, lost, start },
      'Kafka has deleted messages that waited for their turn: see retention.ms',
    )
    onLost(lost)
  }
}
