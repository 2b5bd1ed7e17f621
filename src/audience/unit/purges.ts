import { partitionOf } from '../../message/partitioner.ts'
import { type Entry, isDead, isReportedBefore, reportedAnew } from '../store/entry.ts'
import type { Reading } from '../store/reading.ts'
import {
  deletionKeyOf,
  knownPropertiesPrefix,
  knownPropertyOf,
  rangeOf,
  storeKeyOf,
} from '../store/store-keys.ts'
import type { Purge, UnitContext } from './unit-context.ts'
import type { PropertyStateKey } from '../records/version.ts'

/** Limit on the properties of one user that are purged in one turn. */
const mostAtOnce = 1_000

/**
 * Carries out the purges of one unit: finds all states that the unit holds of a deleted user, and erases
 * them.
 */
export class Purges {
  readonly #context: UnitContext

  constructor(context: UnitContext) {
    this.#context = context
  }

  /** Adds to `reading` the keys that `carryOut` needs. */
  want({ deletionKey, stateKeys }: Purge, reading: Reading): void {
    reading.want(deletionKey)
    for (const stateKey of stateKeys) reading.want(storeKeyOf(stateKey))
  }

  carryOut({ deletionKey, stateKeys, deadAt, done }: Purge, reading: Reading): void {
    const floor = reading.acknowledged(deletionKey)
    if (floor?.kind !== 'deletion') {
      done()
      return
    }
    const upToMs = floor.state.requestedAtMs
    let left = 1
    const ended = (): void => {
      left--
      if (left === 0) done()
    }
    for (const stateKey of stateKeys) {
      left++
      this.#purgeOne(stateKey, { upToMs, deadAt, onEnd: ended }, reading)
    }
    ended()
  }

  #purgeOne(
    stateKey: PropertyStateKey,
    { upToMs, deadAt, onEnd }: { upToMs: number; deadAt: number; onEnd: () => void },
    reading: Reading,
  ): void {
    const { ledger } = this.#context
    const key = storeKeyOf(stateKey)
    const erase = (held: Entry | undefined): void => {
      const entry =
        held === undefined && deadAt === -1 ? undefined : this.#replacementOf(stateKey, held, upToMs)
      if (entry === undefined) onEnd()
      else ledger.launch({ stateKey, key, entry, isEmitting: entry.kind === 'property', held, onEnd })
    }
    const flight = ledger.flightOf(key)
    if (flight === undefined) erase(reading.entry(key))
    else flight.wait({ resume: erase, giveBack: onEnd })
  }

  /**
   * Returns the entry that replaces the entry `held` of a deleted user. Returns `undefined` if `held` stays.
   */
  #replacementOf({ spaceId }: PropertyStateKey, held: Entry | undefined, upToMs: number): Entry | undefined {
    if (held?.kind !== 'property') return { kind: 'gone', upToMs, offset: -1 }
    const { state } = held
    // The held value is newer than the deletion. If this value was last sent before the deletion, receivers
    // drop the value because of the `delete`. So the value is sent to receivers again.
    if (!isDead(held, upToMs)) {
      return isReportedBefore(held, upToMs) ? { ...reportedAnew(held), offset: -1 } : undefined
    }
    // A sync writes no record for a member whom it confirms. So the state of such a member has at least the
    // version of the sync.
    const syncedAt =
      state.kind === 'audience' && state.value === 'true'
        ? this.#context.ledger.syncedAt(spaceId, state.id)
        : undefined
    if (syncedAt === undefined || syncedAt.atMs <= upToMs) return { kind: 'gone', upToMs, offset: -1 }
    return { kind: 'property', state: { ...state, version: syncedAt, since: syncedAt }, offset: -1 }
  }

  /**
   * Purges all states of a user in a space. Resolves with false if the unit went to another owner before the
   * purge was done.
   */
  async purgeUser(userId: string, spaceId: string): Promise<boolean> {
    const { unit, partitions, store, ledger, isEnding } = this.#context
    if (isEnding()) return false
    // Every unit has the deletion floor, but only the user's own unit has the user's states.
    if (partitionOf(userId, partitions) !== unit) return true
    // Only properties with a stored state are found, so all acknowledged entries must be stored first.
    await ledger.stored()
    const known = store.range(rangeOf(knownPropertiesPrefix(spaceId)))
    let lastProperty: string | undefined
    try {
      for (
        let entries = await known.next(mostAtOnce);
        entries.length > 0;
        entries = await known.next(mostAtOnce)
      ) {
        const stateKeys: PropertyStateKey[] = []
        for (const [key] of entries) {
          const { property } = knownPropertyOf(key)
          if (property === lastProperty) continue
          lastProperty = property
          stateKeys.push({ kind: 'property', userId, spaceId, property })
        }
        if (isEnding()) return false
        await this.#purged(stateKeys, deletionKeyOf({ userId, spaceId }))
      }
    } finally {
      await known.close()
    }
    return !isEnding()
  }

  #purged(stateKeys: readonly PropertyStateKey[], deletionKey: string): Promise<void> {
    return new Promise<void>((done) => {
      this.#context.enqueuePurge({ deletionKey, stateKeys, deadAt: -1, done })
    })
  }
}
