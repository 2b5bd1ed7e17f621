import type { BatchLimits, Lane, LaneClass } from '../../../../src/delivery/lanes/lane-queue.ts'
import { createLanes } from '../../../../src/delivery/lanes/lanes.ts'
import type { LaneItem, Lanes, LanesOptions } from '../../../../src/delivery/lanes/lanes-ports.ts'
import type { Rate } from '../../../../src/async/token-bucket.ts'

/** A delivery of a test of the lanes. */
export class Parcel implements LaneItem<Parcel> {
  readonly laneKey: string
  readonly name: string
  laneCap = 4
  laneClass: LaneClass = 'fresh'
  laneRate: Rate | undefined
  laneBatch: BatchLimits | undefined
  bytes = 1
  isLate = false
  isAbandoned = false
  isFromQueue = false
  queuedAtMs = 0
  startedAtMs = 0
  lane: Lane<Parcel> | undefined

  constructor(laneKey: string, name = '', settings: Partial<Parcel> = {}) {
    this.laneKey = laneKey
    this.name = name
    Object.assign(this, settings)
  }
}

/** Lanes with limits that are too high to matter, and all that they did with their parcels. */
export type LanesAtWork = {
  lanes: Lanes<Parcel>
  started: Parcel[]
  overflowed: Parcel[]
  letGo: Parcel[]
  congestion: boolean[]
}

const running: Lanes<Parcel>[] = []

/** Stops all lanes that were opened. Call this after each test. */
export function stopLanes(): void {
  for (const lanes of running.splice(0)) lanes.stop()
}

export function openLanes(settings: Partial<LanesOptions<Parcel>> = {}): LanesAtWork {
  const started: Parcel[] = []
  const overflowed: Parcel[] = []
  const letGo: Parcel[] = []
  const congestion: boolean[] = []
  const lanes = createLanes<Parcel>({
    maxInFlight: 100,
    patienceMs: 1_000_000,
    waitMs: 1_000_000,
    freeRecords: () => 1_000,
    start: (parcel) => started.push(parcel),
    overflow: (parcel) => overflowed.push(parcel),
    letGo: (parcel) => letGo.push(parcel),
    onCongested: (isCongested) => congestion.push(isCongested),
    ...settings,
  })
  running.push(lanes)
  return { lanes, started, overflowed, letGo, congestion }
}

export const keysOf = (parcels: readonly Parcel[]): string => parcels.map(({ laneKey }) => laneKey).join('')
