import { decodeJobRecord, encodeJobRecord, type JobRecord } from './job.ts'
import { Jobs } from './jobs.ts'
import type { KeyedRecord } from '../message/records.ts'

export type EncodedJobRecord = { readonly key: Buffer; readonly value: Buffer }

export type JobLogOptions = {
  /**
   * Reads the records of `replay-jobs` from an offset to the end that the topic has at the time of the call.
   */
  readonly read: (from: number) => AsyncIterable<readonly Pick<KeyedRecord, 'offset' | 'key' | 'value'>[]>
  /**
   * Writes records. Resolves once all in-sync replicas have all of the records. Rejects if Kafka will never
   * accept them.
   */
  readonly write: (records: readonly EncodedJobRecord[]) => Promise<void>
  readonly isAudited?: boolean
}

/**
 * Access to the topic `replay-jobs`. It has the orders of replays, the requests to run or stop a replay, and
 * the progress of replays.
 */
export class JobLog {
  readonly jobs: Jobs
  readonly #options: JobLogOptions
  #position = 0
  #reading = Promise.resolve()
  #next: Promise<void> | undefined

  constructor(options: JobLogOptions) {
    this.#options = options
    this.jobs = new Jobs(options.isAudited)
  }

  /**
   * Reads the topic up to the end that it has at the time of the call. Only one read runs at a time. All
   * calls that are made during a read share the next read.
   */
  update(): Promise<void> {
    this.#next ??= this.#reading
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined
        this.#reading = this.#read()
        return this.#reading
      })
    return this.#next
  }

  /**
   * Writes records. Several records are written in one request, so that an action and its entry in the audit
   * trail aren't separated. This process knows the records only after it has read them.
   */
  write(...records: readonly JobRecord[]): Promise<void> {
    return this.#options.write(records.map(encodeJobRecord))
  }

  async #read(): Promise<void> {
    for await (const records of this.#options.read(this.#position)) {
      for (const { offset, key, value } of records) {
        const record = decodeJobRecord(key, value)
        if (record !== undefined) this.jobs.take(record, offset)
        this.#position = offset + 1
      }
    }
  }
}
