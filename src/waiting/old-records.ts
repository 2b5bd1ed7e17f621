import type { HeldRecord } from '../message/held-record.ts'
import type { WholeRecord } from '../message/records.ts'
import type { UnitQueueOptions } from './queue-options.ts'
import type { UnitIndex } from './unit-index.ts'

type OldRecordsOptions = Pick<
  UnitQueueOptions,
  'unit' | 'topic' | 'reader' | 'maxAgeMs' | 'expire' | 'owners' | 'partition' | 'onLost' | 'log'
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

  constructor(options: OldRecordsOptions) {
    this.#options = options
  }

  /** Takes out the records that have waited for too long, if it is time to look for them. */
  async expire(index: UnitIndex): Promise<void> {
    const { unit, topic, reader, maxAgeMs, expire, owners, partition, mayTake, held, signal } = this.#options
    const nowMs = performance.now()
    if (nowMs - this.#lookedAtMs < everyMs || !mayTake()) return
    const latestMs = Date.now() - maxAgeMs()
    for (let from = index.head; from < index.end && mayTake();) {
      const { records, next } = await reader.piece({ topic, partition: unit, signal, from, to: index.end })
      for (const record of records) {
        if (record.timestampMs > latestMs || !mayTake()) {
          this.#lookedAtMs = nowMs
          return
        }
        const code = index.takeAt(record.offset)
        if (code < 0) continue
        partition.lend()
        expire(held(record), record, owners.classOf(code))
      }
      from = Math.max(next, from + 1)
    }
    this.#lookedAtMs = nowMs
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
