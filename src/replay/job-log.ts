import { decodeJobRecord, encodeJobRecord, type JobRecord } from './job.ts'
import { Jobs } from './jobs.ts'

export type EncodedJobRecord = { readonly key: Buffer; readonly value: Buffer }

export type JobLogOptions = {
  /**
   * Reads the records of `replay-jobs` from an offset to the end that the log has at the time of the call.
   */
  readonly read: (
    from: number,
  ) => AsyncIterable<
    readonly { readonly offset: number; readonly key: Buffer; readonly value: Buffer | null }[]
  >
  /** Resolves once all in-sync replicas have all records. Rejects if that will never be the case. */
  readonly write: (records: readonly EncodedJobRecord[]) => Promise<void>
  readonly isAudited?: boolean
}

/** The log of replays: their orders, the wishes to run or stop them, and their progress. */
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
   * Reads the log up to the end that it has at the time of the call. Reads run one after the other. All calls
   * during a read share the next one.
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
   * Writes records, in one request if there are several: an action and the entry of who did it must not be
   * separated. This process knows them once it has read them.
   */
  write(...records: readonly JobRecord[]): Promise<void> {
    return this.#options.write(records.map(encodeJobRecord))
  }

  async #read(): Promise<void> {
    for await (const records of this.#options.read(this.#position)) {
      for (const { offset, key, value } of records) {
        const record = decodeJobRecord(key, value)
        if (record !== undefined) this.jobs.take(record)
        this.#position = offset + 1
      }
    }
  }
}
