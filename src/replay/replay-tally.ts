import type { Chosen, LeftOutReason } from './chosen.ts'
import type { OutboundRecord } from '../message/records.ts'

/**
 * The number of records that are sent or would be sent, and the numbers of records that match the selection
 * but are left out, by reason.
 */
export type Tally = {
  readonly records: number
  /** The total bytes of the keys and values of the records that are sent or would be sent. */
  readonly bytes: number
  readonly leftOut: Readonly<Partial<Record<LeftOutReason, number>>>
}

const nothing: Tally = { records: 0, bytes: 0, leftOut: {} }

export function bytesOf({ key, value }: Pick<OutboundRecord, 'key' | 'value'>): number {
  return (key?.length ?? 0) + (value?.length ?? 0)
}

/** Adds records to a tally. A tally that was returned doesn't change later. */
export class TallyBuilder {
  #records: number
  #bytes: number
  readonly #leftOut: Partial<Record<LeftOutReason, number>>

  constructor({ records, bytes, leftOut }: Tally = nothing) {
    this.#records = records
    this.#bytes = bytes
    this.#leftOut = { ...leftOut }
  }

  add(chosen: Chosen): void {
    if (chosen.kind === 'left_out') this.leaveOut(chosen.why)
    else if (chosen.kind === 'send') for (const record of chosen.records) this.send(record)
  }

  send(record: Pick<OutboundRecord, 'key' | 'value'>): void {
    this.#records++
    this.#bytes += bytesOf(record)
  }

  leaveOut(why: LeftOutReason): void {
    this.#leftOut[why] = (this.#leftOut[why] ?? 0) + 1
  }

  get tally(): Tally {
    return { records: this.#records, bytes: this.#bytes, leftOut: { ...this.#leftOut } }
  }
}

export function leftOutCount({ leftOut }: Tally): number {
  return Object.values(leftOut).reduce((sum, count) => sum + count, 0)
}
