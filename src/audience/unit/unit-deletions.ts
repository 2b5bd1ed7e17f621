import type { HeldRecord } from '../../message/held-record.ts'
import type { Entry } from '../store/entry.ts'
import type { PlacedDeletion } from '../records/deletion-request.ts'
import { Fifo } from '../../async/fifo.ts'
import { deleteOf } from '../records/made-message.ts'
import { TopicIntake } from './topic-intake.ts'
import type { Purges } from './purges.ts'
import {
  type DeletionFloor,
  type DeletionStateKey,
  encodeDeletionFloor,
  encodeStateKey,
} from '../records/state-record.ts'
import { storeKeyOf } from '../store/store-keys.ts'
import type { UnitContext } from './unit-context.ts'

type Item = {
  readonly record: HeldRecord
  readonly request: PlacedDeletion
  readonly bytes: number
  /** True once the record has been settled, left to the next owner, or passed to `deliverDelete`. */
  isOver: boolean
}

/** Limit on the floors that are written to other units at the same time. */
const writesAtOnce = 256

/** Carries out the deletion requests for users of one unit, one request after the other. */
export class UnitDeletions {
  readonly #context: UnitContext
  readonly #purges: Purges
  readonly intake: TopicIntake
  readonly #waiting = new Fifo<Item>()
  #current: Item | undefined

  constructor(context: UnitContext, purges: Purges) {
    this.#context = context
    this.#purges = purges
    const { ports, unit } = context
    this.intake = new TopicIntake((topic, isFull) => ports.setUnitFull(topic, unit, isFull))
  }

  accept(record: HeldRecord, request: PlacedDeletion, bytes: number): void {
    this.intake.add(record.topic, bytes)
    this.#waiting.push({ record, request, bytes, isOver: false })
    this.#next()
  }

  /**
   * Leaves requests to the next owner: all requests that have not been started yet and whose record `isToGo`
   * selects.
   */
  letGo(isToGo: (record: HeldRecord) => boolean): void {
    for (const { record, bytes } of this.#waiting.take((item) => isToGo(item.record))) {
      this.intake.remove(bytes)
      record.giveBack()
    }
  }

  /** Leaves to the next owner the request that was started and has not ended. */
  letGoCurrent(): void {
    if (this.#current !== undefined) giveBack(this.#current)
  }

  #next(): void {
    const { isEnding, fail } = this.#context
    if (this.#current !== undefined || isEnding()) return
    const item = this.#waiting.shift()
    if (item === undefined) return
    this.#current = item
    void this.#carryOut(item)
      .catch(fail)
      .finally(() => {
        giveBack(item)
        this.#current = undefined
        this.intake.remove(item.bytes)
        this.#next()
      })
  }

  /**
   * Carries out a request in three steps: writes floors, writes tombstones, and sends messages. The
   * floor is written to every unit. The user's own unit is the last one, so that all other units already have
   * the floor when this unit has it.
   */
  async #carryOut(item: Item): Promise<void> {
    const { record, request } = item
    const { ports, readAcknowledged, isEnding } = this.#context
    const { requestId, requestedAtMs, userId } = request
    const { partition, offset } = request.origin ?? record
    const stateKeys = request.sources.map((sourceId): DeletionStateKey => ({
      kind: 'deletion',
      userId,
      sourceId,
    }))
    const floors = await readAcknowledged(stateKeys.map(storeKeyOf))
    if (isEnding()) return
    const floor: DeletionFloor = { requestedAtMs, requestId, partition, offset }
    const toTell: DeletionStateKey[] = []
    for (const [index, stateKey] of stateKeys.entries()) {
      const held = floors[index]
      const known = held?.kind === 'deletion' ? held.state : undefined
      if (known?.requestId === requestId && !isOf(known, record, request)) continue
      toTell.push(stateKey)
      if (known === undefined || known.requestedAtMs < requestedAtMs) await this.#writeFloors(stateKey, floor)
      const isPurged = await this.#purges.purgeUser(userId, stateKey.sourceId)
      if (!isPurged) return
    }
    if (item.isOver) return
    item.isOver = true
    if (toTell.length === 0) record.settle()
    else
      ports.deliverDelete(record, { userId, deletes: toTell.map((stateKey) => deleteOf(stateKey, request)) })
  }

  async #writeFloors(stateKey: DeletionStateKey, floor: DeletionFloor): Promise<void> {
    const { unit, partitions, ports, readAcknowledged, isEnding } = this.#context
    const key = encodeStateKey(stateKey)
    const value = encodeDeletionFloor(floor)
    const others = Array.from({ length: partitions }, (_, partition) => partition).filter(
      (one) => one !== unit,
    )
    for (let at = 0; at < others.length; at += writesAtOnce) {
      const some = others.slice(at, at + writesAtOnce)
      await Promise.all(some.map((partition) => ports.writeState({ partition, key, value })))
    }
    const [held] = await readAcknowledged([storeKeyOf(stateKey)])
    if (!isEnding()) await this.#writeOwnFloor(stateKey, floor, held)
  }

  #writeOwnFloor(stateKey: DeletionStateKey, floor: DeletionFloor, held: Entry | undefined): Promise<void> {
    const { ledger } = this.#context
    const key = storeKeyOf(stateKey)
    return new Promise<void>((resolve) => {
      const launch = (now: Entry | undefined): void =>
        ledger.launch({
          stateKey,
          key,
          entry: { kind: 'deletion', state: floor, offset: -1 },
          isEmitting: false,
          held: now,
          onEnd: () => resolve(),
        })
      const flight = ledger.flightOf(key)
      if (flight === undefined) launch(held)
      else flight.wait({ resume: launch, giveBack: resolve })
    })
  }
}

/**
 * Returns true if a floor was written for this record, or for the original record from which this record was
 * moved. Returns false if the floor was written for another record of the same request.
 */
function isOf(floor: DeletionFloor, record: HeldRecord, { origin }: PlacedDeletion): boolean {
  return [record, origin].some(
    (place) => place?.partition === floor.partition && place.offset === floor.offset,
  )
}

function giveBack(item: Item): void {
  if (item.isOver) return
  item.isOver = true
  item.record.giveBack()
}
