import { decodeJobRecord, encodeJobRecord, type JobRecord } from './job.ts'
import { Jobs } from './jobs.ts'

export type EncodedJobRecord = { readonly key: Buffer; readonly value: Buffer }

export type JobLogOptions = {
  /** The records of `replay-jobs` from an offset to the end as of the call. */
  readonly read: (
    from: number,
  ) => AsyncIterable<
    readonly { readonly offset: number; readonly key: Buffer; readonly value: Buffer | null }[]
  >
  /** Resolves once all in-sync replicas have all of them. Rejects where that will never be. */
  readonly write: (records: readonly EncodedJobRecord[]) => Promise<void>
  readonly isAudited?: boolean
}

/** The log of replays: what was asked for, what is wanted of it, and how far it is. */
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
   * Reads what is in the log as of the call. One after the other: whoever calls meanwhile shares the one that
   * begins then.
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
   * Writes records, in one request where there are several: what is done, and who did it, must not part. They are
   * known here once they are read.
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
