import { decodeState, isPresent } from '../audience/records/state-record.ts'
import type { HeldState } from '../audience/store/states-page.ts'
import { compareVersions } from '../audience/records/version.ts'
import { spread } from '../audience-files/distinct.ts'
import { Spool } from '../audience-files/spool.ts'
import type { KeyedRecord } from '../message/records.ts'

/** The state of a property of a user, with the append time of its record. */
export type CurrentState = HeldState & { readonly timestampMs: number }

/** A filter that selects states. A field that is `undefined` doesn't restrict the selection. */
export type StateFilter = {
  readonly spaceId: string
  readonly audienceId: string | undefined
  readonly property: string | undefined
  /**
   * True to include the states of users who have left an audience (value `false`), and of traits that have no
   * value any more (value `null`).
   */
  readonly withLeft: boolean
}

/**
 * Finds the present states of a unit from all records of the unit's `memberships`. A property may have
 * several records, and some of these records repeat the property's value with a newer version. The records
 * are stored on disk in buckets and are compared bucket by bucket, so the memory doesn't grow with the number
 * of records.
 */
export class CurrentStates {
  static readonly buckets = 64
  readonly #filter: StateFilter
  readonly #spool = new Spool(CurrentStates.buckets)

  constructor(filter: StateFilter) {
    this.#filter = filter
  }

  add({ offset, key, value, timestampMs }: KeyedRecord): void {
    const decoded = decodeState(key, value)
    // The record wasn't written by Sluice, or it isn't the state of a property.
    if (!decoded.ok || decoded.record.stateKey.kind !== 'property') return
    const { userId, spaceId, property } = decoded.record.stateKey
    const isAsked = this.#filter.property === undefined || this.#filter.property === property
    if (spaceId !== this.#filter.spaceId || !isAsked) return
    // The key is spelled anew, so that all records of the same property have the same key, whatever program
    // wrote them.
    const ownKey = JSON.stringify([userId, spaceId, property])
    const entry = [offset, timestampMs, ownKey, value === null ? null : value.toString()]
    this.#spool.add(spread(ownKey) % CurrentStates.buckets, JSON.stringify(entry))
  }

  /** Returns those present states of a bucket that the filter selects, sorted by offset. */
  of(bucket: number): readonly CurrentState[] {
    const current = new Map<string, CurrentState>()
    for (const texts of this.#spool.read(bucket)) {
      for (const text of texts) this.#place(text, current)
    }
    return [...current.values()]
      .filter((state) => this.#isMeant(state))
      .sort((one, other) => one.offset - other.offset)
  }

  close(): void {
    this.#spool.close()
  }

  #place(text: string, current: Map<string, CurrentState>): void {
    const { offset, timestampMs, key, value } = readSpooled(text)
    if (value === null) {
      // The record is a tombstone: the user was deleted.
      current.delete(key)
      return
    }
    const decoded = decodeState(Buffer.from(key), Buffer.from(value))
    if (!decoded.ok || decoded.record.stateKey.kind !== 'property') return
    // The key and the state always belong to the same kind of record. TypeScript forgets this when they are
    // taken out of their object, so the state is checked too.
    const { stateKey, state } = decoded.record
    if (state === null || !('since' in state)) return
    const held = current.get(key)
    if (held !== undefined && compareVersions(held.state.version, state.version) > 0) return
    current.set(key, { stateKey, state, offset, timestampMs })
  }

  #isMeant({ state }: CurrentState): boolean {
    const { audienceId, withLeft } = this.#filter
    if (audienceId !== undefined && (state.kind !== 'audience' || state.id !== audienceId)) return false
    return withLeft || isPresent(state)
  }
}

type Spooled = { offset: number; timestampMs: number; key: string; value: string | null }

/** Decodes a text that `add` has written to the disk. */
function readSpooled(text: string): Spooled {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `add` has written this text
  const [offset, timestampMs, key, value] = JSON.parse(text) as [number, number, string, string | null]
  return { offset, timestampMs, key, value }
}
