import type { HeldRecord, RecordContent } from '../../../src/message/held-record.ts'
import type { OriginPlace } from '../../../src/message/record-headers.ts'
import type {
  OutboundRecord,
  Pipeline,
  QueueClass,
  WaitingQueue,
} from '../../../src/pipeline/pipeline-ports.ts'

/** A record of `waiting`. */
export type Queued = {
  readonly id: string
  readonly destinationId: string
  readonly queueClass: QueueClass
  readonly unit: number
  readonly content: RecordContent
}

/** What is appended to `waiting`. */
export type ToQueue = Omit<Queued, 'id'>

type Surroundings = {
  readonly isOpen: boolean
  /** True once nothing may be pulled any more. */
  isLost(): boolean
  /** True if what was pulled comes at once. */
  readonly isPrompt: boolean
  /** Returns the records that are in the queue, and not done. */
  waiting(): readonly Queued[]
  append(record: ToQueue): Promise<unknown>
  lend(record: Queued, giveBack: () => void): HeldRecord
}

type Delivery = Parameters<WaitingQueue['has']>[0]

/** The queues of all destinations, as one owner of their units has them. */
export class SimulatedQueue implements WaitingQueue {
  readonly #unit: Surroundings
  readonly #pipeline: () => Pick<Pipeline, 'acceptWaiting'>
  readonly #taken = new Set<string>()
  readonly #unacknowledged: ToQueue[] = []
  #wantedRecords: Queued[] = []

  constructor(unit: Surroundings, pipeline: () => Pick<Pipeline, 'acceptWaiting'>) {
    this.#unit = unit
    this.#pipeline = pipeline
  }

  get isOpen(): boolean {
    return this.#unit.isOpen
  }

  get #untaken(): readonly Queued[] {
    return this.#unit.waiting().filter(({ id }) => !this.#taken.has(id))
  }

  has({ destinationId, laneClass, pending }: Delivery): boolean {
    const classes: readonly QueueClass[] = laneClass === 'fresh' ? ['fresh', 'front'] : [laneClass]
    return [...this.#untaken, ...this.#unacknowledged, ...this.#wantedRecords].some(
      (one) =>
        one.unit === pending.record.partition &&
        one.destinationId === destinationId &&
        classes.includes(one.queueClass),
    )
  }

  wasQueued(): boolean {
    return false
  }

  isOvertaken(): boolean {
    return false
  }

  async append(
    { partition: unit }: OriginPlace,
    destinationId: string,
    queueClass: QueueClass,
    { key, value, headers }: Pick<OutboundRecord, 'key' | 'value' | 'headers'>,
  ): Promise<'acknowledged'> {
    const record: ToQueue = { destinationId, queueClass, unit, content: { key, value, headers } }
    this.#unacknowledged.push(record)
    await this.#unit.append(record)
    this.#unacknowledged.splice(this.#unacknowledged.indexOf(record), 1)
    return 'acknowledged'
  }

  waiting(): ReadonlySet<string> {
    return new Set(this.#untaken.map(({ destinationId }) => destinationId))
  }

  countOf(id: string): number {
    return this.#untaken.filter(({ destinationId }) => destinationId === id).length
  }

  oldestOf(): undefined {
    return undefined
  }

  wantedOf(id: string): number {
    return this.#wantedRecords.filter(({ destinationId }) => destinationId === id).length
  }

  get wanted(): number {
    return this.#wantedRecords.length
  }

  pull(id: string, queueClass: QueueClass, most: number): number {
    if (this.#unit.isLost()) return 0
    const pulled = this.#untaken
      .filter((one) => one.destinationId === id && one.queueClass === queueClass)
      .slice(0, Math.max(0, most))
    for (const one of pulled) this.#taken.add(one.id)
    this.#wantedRecords.push(...pulled)
    if (this.#unit.isPrompt) this.hand(Infinity)
    return pulled.length
  }

  /** Hands the first records that were pulled to the pipeline, in the order of their offsets. */
  hand(most: number): void {
    for (let count = 0; count < most && this.#wantedRecords.length > 0; count++) {
      const [first] = this.#wantedRecords.toSorted((one, other) => offsetOf(one) - offsetOf(other))
      if (first === undefined) return
      this.#wantedRecords.splice(this.#wantedRecords.indexOf(first), 1)
      const record = this.#unit.lend(first, () => this.#taken.delete(first.id))
      this.#pipeline().acceptWaiting(record, first.content, first.queueClass)
    }
  }

  /** Leaves what was pulled, and hasn't come yet, to the next owner. */
  leave(): void {
    this.#wantedRecords = []
  }
}

export function offsetOf({ id }: Pick<Queued, 'id'>): number {
  return Number(id.split('/').at(-1))
}
