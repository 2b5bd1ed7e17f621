import type { AudiencePorts } from './audience-ports.ts'
import type { AudienceDeadReason } from '../message/dead-letter-reasons.ts'
import type { OpenSync } from './open-sync.ts'
import { Paced } from './paced.ts'
import type { StateStore, StoreOperation } from './store.ts'
import { entriesOf } from './store-entries.ts'
import { anyStaged, endedSyncsPrefix, rangeOf, snapshotOfEnded } from './store-keys.ts'

export type SyncCleanupOptions = {
  readonly store: StateStore
  readonly ports: Pick<AudiencePorts, 'refuse' | 'now'>
  readonly onTrouble: (error: unknown) => void
  /** Returns true once the unit is being left. */
  readonly isEnding: () => boolean
}

const operationsAtOnce = 1_000
const endedKeptMs = 8 * 86_400_000
/**
 * The bytes of removed parts after which the store is compacted: as much as the store gathers in memory
 * before it writes a file.
 */
const mostRemovedBytes = 2 * 1024 ** 2

/** Removes the remains of a sync that has ended: its parts and its staged users. */
export class SyncCleanup {
  readonly #options: SyncCleanupOptions
  /** Bytes of parts that were removed since the last compaction. */
  #removedBytes = 0

  constructor(options: SyncCleanupOptions) {
    this.#options = options
  }

  /**
   * Writes the parts to the dead letters, one after the other, since together they may be of any size. Then
   * clears the sync.
   */
  async refuseParts(sync: OpenSync, reason: AudienceDeadReason, detail: string): Promise<void> {
    for (let [part] = sync.held; part !== undefined; [part] = sync.held) {
      const { record, staged, key, sourceId } = part
      let bytes: Buffer | undefined
      try {
        bytes = await sync.staging.partBytes(staged)
      } catch (error) {
        if (this.#options.isEnding()) return
        throw error
      }
      // The remaining parts were given back meanwhile.
      if (sync.held[0] !== part) return
      sync.held.shift()
      const paced = new Paced(record)
      this.#options.ports.refuse(
        paced,
        { key, value: bytes ?? null, headers: { 'source-id': sourceId } },
        reason,
        detail,
      )
      await paced.end
      if (this.#options.isEnding()) return
    }
    await this.clear(sync, reason)
  }

  /**
   * Removes what was staged, and remembers how the sync ended. Forgets the ends of syncs that are older than
   * `endedKeptMs`.
   */
  async clear({ staging, mark, part }: OpenSync, ended: AudienceDeadReason | 'applied'): Promise<void> {
    const { store, ports } = this.#options
    const operations: StoreOperation[] = [{ type: 'put', key: mark, value: ended }]
    for (const operation of staging.removal()) {
      operations.push(operation)
      if (operations.length >= operationsAtOnce) await store.write(operations.splice(0))
    }
    const { spaceId, audienceId } = part
    for (const [key] of await entriesOf(store.range(rangeOf(endedSyncsPrefix(spaceId, audienceId))))) {
      const isOld = ports.now() - snapshotOfEnded(key) > endedKeptMs
      if (isOld && key !== mark) operations.push({ type: 'del', key })
    }
    await store.write(operations)
    this.#giveRoomBack(staging.bytes)
  }

  /**
   * Compacts the range of staged data once enough was removed. Staged data has keys of its own, to which only
   * syncs write, so LevelDB would keep the removed data until the next sync. Staged data is twice the size of
   * the states of the same users. A compaction after each small sync isn't worth the work.
   */
  #giveRoomBack(removedBytes: number): void {
    this.#removedBytes += removedBytes
    if (this.#removedBytes < mostRemovedBytes) return
    this.#removedBytes = 0
    // Nobody waits for the compaction.
    this.#options.store.compact(anyStaged).catch(this.#options.onTrouble)
  }
}
