import { headerText } from '../message/record-headers.ts'
import type { Chosen, SourceRecord } from './chosen.ts'
import { bytesOf } from './replay-tally.ts'

/**
 * Records that a replay would send, by the destination to which they go and the reason of their dead letters.
 * Without `destinationId`, they go back to the topic that they came from. Events have no reason.
 */
export type Group = {
  readonly destinationId: string | undefined
  readonly reason: string | undefined
  readonly records: number
  readonly bytes: number
}

/** Limit on the groups. Records of further groups are counted without destination and reason. */
const mostGroups = 1_000

type Growing = { -readonly [Key in keyof Group]: Group[Key] }

/** Counts records by destination and reason. */
export class Groups {
  readonly #groups = new Map<string, Growing>()

  add({ headers }: SourceRecord, chosen: Chosen): void {
    if (chosen.kind !== 'send') return
    const reason = headerText(headers, 'reason')
    for (const record of chosen.records) {
      const group = this.#of(record.headers['destination-id'], reason)
      group.records++
      group.bytes += bytesOf(record)
    }
  }

  /** The groups, largest first. */
  get list(): readonly Group[] {
    return [...this.#groups.values()].sort((one, other) => other.records - one.records)
  }

  #of(destinationId: string | undefined, reason: string | undefined): Growing {
    const key = JSON.stringify([destinationId, reason])
    const known = this.#groups.get(key)
    if (known !== undefined) return known
    if (this.#groups.size >= mostGroups && key !== othersKey) return this.#of(undefined, undefined)
    const group = { destinationId, reason, records: 0, bytes: 0 }
    this.#groups.set(key, group)
    return group
  }
}

const othersKey = JSON.stringify([undefined, undefined])
