import type { HeldRecord } from '../../message/held-record.ts'

/** A record with a promise that resolves once the record is settled or left to the next owner. */
export class Paced implements HeldRecord {
  readonly #record: HeldRecord
  readonly #ended = Promise.withResolvers<void>()

  constructor(record: HeldRecord) {
    this.#record = record
  }

  get end(): Promise<void> {
    return this.#ended.promise
  }

  get topic(): string {
    return this.#record.topic
  }

  get partition(): number {
    return this.#record.partition
  }

  get offset(): number {
    return this.#record.offset
  }

  get timestampMs(): number {
    return this.#record.timestampMs
  }

  get isLate(): boolean {
    return this.#record.isLate
  }

  get isAbandoned(): boolean {
    return this.#record.isAbandoned
  }

  settle(): void {
    this.#record.settle()
    this.#ended.resolve()
  }

  giveBack(): void {
    this.#record.giveBack()
    this.#ended.resolve()
  }
}
