import type { Partition } from './partition.ts'
import type { HeldRecord } from '../../message/held-record.ts'

export class LoanedRecord implements HeldRecord {
  readonly #partition: Partition
  readonly offset: number
  readonly timestampMs: number
  readonly isLate: boolean

  constructor(partition: Partition, offset: number, timestampMs: number, isLate: boolean) {
    this.#partition = partition
    this.offset = offset
    this.timestampMs = timestampMs
    this.isLate = isLate
  }

  get topic(): string {
    return this.#partition.topic
  }

  get partition(): number {
    return this.#partition.id
  }

  get isAbandoned(): boolean {
    return this.#partition.isLost
  }

  get isElsewhere(): boolean {
    return this.#partition.isElsewhere
  }

  get mayHaveBegun(): boolean {
    return this.offset < this.#partition.begunBelow
  }

  get isReadAgain(): boolean {
    return this.offset < this.#partition.readAgainBelow
  }

  get isReadAgainOver(): boolean {
    return this.#partition.isReadAgainOver
  }

  passOn(): void {
    this.#partition.passOn(this.offset)
  }

  settle(): void {
    this.#partition.settle(this.offset)
  }

  giveBack(): void {
    this.#partition.giveBack()
  }
}
