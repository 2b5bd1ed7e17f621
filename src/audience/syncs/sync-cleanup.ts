import type { AudiencePorts } from '../audience-ports.ts'
import type { AudienceDeadReason } from '../../message/dead-letter-reasons.ts'
import type { OpenSync } from './open-sync.ts'
import { Paced } from './watched-record.ts'
import { type StateStore, type StoreOperation, entriesOf } from '../store/store.ts'
import { anyStaged, endedSyncsPrefix, rangeOf, snapshotOfEnded } from '../store/store-keys.ts'

export type SyncCleanupOptions = {
  readonly store: StateStore
  readonly ports: Pick<AudiencePorts, 'refuse' | 'now'>
  readonly onTrouble: (error: unknown) => void
  /** Returns true once this owner has begun to leave the unit. */
  readonly isEnding: () => boolean
}

const operationsAtOnce = 1_000
const endedKeptMs = 8 * 86_400_000
/**
 * The bytes of removed parts after which the store is compacted. The store collects this many bytes in memory
 * before it writes a file.
 */
const mostRemovedBytes = 2 * 1024 ** 2

/** Removes the data of a sync that has ended: its parts and its staged users. */
export class SyncCleanup {
  readonly #options: SyncCleanupOptions
  /** Bytes of parts that were removed since the last compaction. */
  #removedBytes = 0

  constructor(options: SyncCleanupOptions) {
    this.#options = options
  }

  /**
   * Writes the parts of a sync to the dead letters and then clears the sync. The parts are written one after
   * the other, because the size of all parts together has no limit.
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
      // The remaining parts have been left to the next owner in the meantime.
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
   * Removes the staged data of a sync, and stores how the sync ended. Removes the entries of syncs that ended
   * more than `endedKeptMs` ago.
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
   * Compacts the range of staged data once enough data has been removed. Only syncs write to this range, so
   * LevelDB would keep the removed data until the next sync. Staged data is twice the size of the states of
   * the same users. After a small sync, a compaction would not be worth its work.
   */
  #giveRoomBack(removedBytes: number): void {
    this.#removedBytes += removedBytes
    if (this.#removedBytes < mostRemovedBytes) return
    this.#removedBytes = 0
    // No caller waits for the compaction.
    this.#options.store.compact(anyStaged).catch(this.#options.onTrouble)
  }
}
