import { Cursor } from './cursor.ts'
import { decideSync, isTaken } from '../decide.ts'
import { type Entry, hasIdMark, idMarkOf, isMemberText } from '../store/entry.ts'
import type { KeyFilter } from '../store/key-filter.ts'
import type { Ledger } from '../store/ledger.ts'
import type { OpenSync } from './open-sync.ts'
import { type StateStore, entriesOf } from '../store/store.ts'
import {
  deletionPrefix,
  knownPropertiesPrefix,
  knownPropertyOf,
  knownPropertyPrefix,
  propertyPrefix,
  rangeOf,
  storeKeyOf,
  unescapeId,
} from '../store/store-keys.ts'
import type { Version } from '../records/version.ts'

export type SyncComparisonOptions = {
  readonly store: StateStore
  readonly ledger: Ledger
  readonly deletions: KeyFilter
  readonly onTrouble: (error: unknown) => void
  /** Returns true once this owner has begun to leave the unit. */
  readonly isEnding: () => boolean
  /**
   * Returns true once this owner has begun to leave the unit, or once the sync's parts have been left to the
   * next owner.
   */
  readonly isToStop: (sync: OpenSync) => boolean
}

const mostInFlight = 2_000
const entriesAtOnce = 1_000

/** Compares a whole sync with the states of its unit, side by side. Keeps no data between two calls. */
export class SyncComparison {
  readonly #options: SyncComparisonOptions

  constructor(options: SyncComparisonOptions) {
    this.#options = options
  }

  /**
   * Returns true if the property of at least one user of the sync belongs to another audience or trait. In
   * most cases, no other audience or trait has ever written the property. In that case, no user has to be
   * read.
   */
  async isTakenByOther(sync: OpenSync): Promise<boolean> {
    const { store } = this.#options
    const { spaceId, property, audienceId } = sync.part
    const known = await entriesOf(store.range(rangeOf(knownPropertyPrefix(spaceId, property))))
    if (known.every(([key]) => isOfAudience(knownPropertyOf(key), audienceId))) return false
    let isTakenOfOne = false
    const claim = { kind: 'audience', id: audienceId, version: sync.version } as const
    await this.#walk(sync, (user, isMember, stored, deletedUpToMs) => {
      const state = this.#heldOf(sync, user, stored)?.state
      if (!isMember || state === undefined || state.version.atMs <= deletedUpToMs) return
      if (isTaken(state, claim, this.#ownerSyncedAt(sync, state.id))) isTakenOfOne = true
    })
    return isTakenOfOne
  }

  /**
   * Returns the version of the last sync of the audience `id`, to which a user's property belongs at present.
   * Returns `undefined` if `id` is the audience of the given sync, or if no sync of `id` was applied.
   */
  #ownerSyncedAt({ part }: OpenSync, id: string): Version | undefined {
    return id === part.audienceId ? undefined : this.#options.ledger.syncedAt(part.spaceId, id)
  }

  /**
   * Returns true if users of this unit are members of the audience under another property, for example
   * because the audience was renamed and has no key. The sync would not mark these users as having left.
   */
  async isRenamed(sync: OpenSync): Promise<boolean> {
    const { store, ledger } = this.#options
    const { spaceId, property, audienceId } = sync.part
    const idMark = idMarkOf(audienceId)
    const known = await entriesOf(store.range(rangeOf(knownPropertiesPrefix(spaceId))))
    for (const [knownKey] of known) {
      const other = knownPropertyOf(knownKey)
      if (!isOfAudience(other, audienceId) || other.property === property) continue
      const states = store.range(rangeOf(propertyPrefix(spaceId, other.property)))
      try {
        for (let entries = await states.next(entriesAtOnce); entries.length > 0;) {
          const isMember = ([key, text]: readonly [string, string]): boolean =>
            isMemberText(text) && hasIdMark(text, idMark) && ledger.held(key, text) !== undefined
          if (entries.some(isMember)) return true
          entries = await states.next(entriesAtOnce)
        }
      } finally {
        await states.close()
      }
    }
    return false
  }

  #heldOf({ part }: OpenSync, user: string, stored: string | undefined) {
    const { ledger } = this.#options
    const entry = ledger.held(propertyPrefix(part.spaceId, part.property) + user, stored)
    return entry?.kind === 'property' ? entry : undefined
  }

  /**
   * Writes the differences between a sync and the states of its unit. Resolves with `undefined` if this owner
   * has left the unit before all differences were written.
   */
  async writeDifferences(
    sync: OpenSync,
  ): Promise<{ joined: number; left: number; unchanged: number } | undefined> {
    const { ledger, onTrouble, isEnding } = this.#options
    const { part, version } = sync
    const { spaceId, property, audienceId, name } = part
    const ofUser = { audienceId, name, version }
    const idMark = idMarkOf(audienceId)
    const counts = { joined: 0, left: 0, unchanged: 0 }
    const writes = { left: 0 }
    const isWhole = await this.#walk(sync, (user, isMember, stored, deletedUpToMs) => {
      if (stored !== undefined && deletedUpToMs === -Infinity && !ledger.hasForeign) {
        const wasMember = isMemberText(stored)
        if (wasMember === isMember && hasIdMark(stored, idMark)) {
          if (isMember) counts.unchanged++
          return
        }
      }
      const held = this.#heldOf(sync, user, stored)
      const ownerSyncedAt = held === undefined ? undefined : this.#ownerSyncedAt(sync, held.state.id)
      const state = decideSync(ofUser, isMember, { held: held?.state, deletedUpToMs, ownerSyncedAt })
      // The state is older than a deletion, but is not erased yet. If the state stayed, it would seem to
      // belong to a member whom the sync has confirmed.
      const isDead = !isMember && held !== undefined && held.state.version.atMs <= deletedUpToMs
      if (state === undefined && !isDead) {
        if (isMember) counts.unchanged++
        return
      }
      if (isMember) counts.joined++
      else if (!isDead) counts.left++
      const entry: Entry =
        state === undefined
          ? { kind: 'gone', upToMs: deletedUpToMs, offset: -1 }
          : { kind: 'property', state, offset: -1 }
      const stateKey = { kind: 'property', userId: unescapeId(user), spaceId, property } as const
      const key = storeKeyOf(stateKey)
      writes.left++
      const launch = (now: ReturnType<Ledger['held']>): void =>
        ledger.launch({
          stateKey,
          key,
          entry,
          isEmitting: state !== undefined,
          held: now,
          onEnd(end) {
            writes.left--
            if (end === 'refused')
              onTrouble(new Error('memberships refuses a state: see its max.message.bytes'))
          },
        })
      const flight = ledger.flightOf(key)
      if (flight === undefined) launch(held)
      else flight.wait({ resume: launch, giveBack: () => writes.left-- })
    })
    while (writes.left > 0 && !isEnding()) await ledger.room(1)
    return isWhole && !isEnding() ? counts : undefined
  }

  /**
   * Goes through the users of the sync and the users who have the property, side by side in the order of
   * their keys. Calls `visit` for each user. `stored` is the user's state as text. Resolves with false if
   * this owner has left the unit before the end.
   */
  async #walk(
    sync: OpenSync,
    visit: (user: string, isMember: boolean, stored: string | undefined, deletedUpToMs: number) => void,
  ): Promise<boolean> {
    const { store, ledger, deletions, isToStop } = this.#options
    const { spaceId, property } = sync.part
    const prefix = propertyPrefix(spaceId, property)
    const users = new Cursor(await sync.staging.sorted())
    const stateReader = store.range(rangeOf(prefix))
    const states = new Cursor(() => stateReader.next(entriesAtOnce))
    const floorPrefix = deletionPrefix(spaceId)
    const floorReader = deletions.isEmpty ? undefined : store.range(rangeOf(floorPrefix))
    const floors = new Cursor(async () => (await floorReader?.next(entriesAtOnce)) ?? [])
    const floorOf = (user: string): number => {
      const key = floorPrefix + user
      const floor = floors.current
      const entry = floor?.[0] === key ? ledger.held(key, floor[1]) : undefined
      return entry?.kind === 'deletion' ? entry.state.requestedAtMs : -Infinity
    }
    try {
      for (;;) {
        if (users.isToRefill || states.isToRefill) {
          if (isToStop(sync)) return false
          if (users.isToRefill) await users.refill()
          if (states.isToRefill) await states.refill()
        }
        if (ledger.inFlight >= mostInFlight) {
          await ledger.room(mostInFlight / 2)
          if (isToStop(sync)) return false
        }
        const user = users.current
        const entry = states.current
        if (user === undefined && entry === undefined) return true
        const stateUser = entry?.[0].slice(prefix.length)
        const isBoth = user === stateUser
        const isMember = isBoth || (user !== undefined && (stateUser === undefined || user < stateUser))
        const hasState = isBoth || !isMember
        const at = isMember ? user : stateUser
        if (at === undefined) return true
        if (floorReader !== undefined) await advanceTo(floors, floorPrefix + at)
        const deletedUpToMs = floorReader === undefined ? -Infinity : floorOf(at)
        visit(at, isMember, hasState ? entry?.[1] : undefined, deletedUpToMs)
        if (isMember) users.advance()
        if (hasState) states.advance()
      }
    } finally {
      await stateReader.close()
      await floorReader?.close()
    }
  }
}

function isOfAudience({ kind, id }: ReturnType<typeof knownPropertyOf>, audienceId: string): boolean {
  return kind === 'audience' && id === audienceId
}

/** Moves a cursor to the first entry whose key isn't lower than `key`. */
async function advanceTo(cursor: Cursor<readonly [key: string, value: string]>, key: string): Promise<void> {
  while (cursor.isToRefill || (cursor.current !== undefined && cursor.current[0] < key)) {
    if (cursor.isToRefill) await cursor.refill()
    else cursor.advance()
  }
}
