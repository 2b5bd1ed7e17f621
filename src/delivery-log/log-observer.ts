import type { HeldRecord } from '../message/held-record.ts'
import type { Outcome } from '../delivery/outcomes/outcome.ts'
import type { HookResult } from '../pipeline/decision.ts'
import type { Delivery } from '../pipeline/delivery.ts'
import type { FilteredMessage, PipelineObserver } from '../pipeline/pipeline-ports.ts'
import { BlockWriter, type WrittenState } from './block-writer.ts'
import { type LogKind, logOutcomes, logVerdicts } from './log-record.ts'
import type { ValuesOf } from './indexed-values.ts'
import { SuccessSampler } from './successes.ts'
import type { UserHash } from './user-hash.ts'

/** The receiver of the blocks that were written. */
export type BlockOutlet = {
  /** True while the outlet is full. Blocks that are offered while it is full are dropped. */
  readonly isFull: boolean
  offer(partition: number, block: Buffer, records: number): void
}

export type LogObserverOptions = {
  readonly outlet: BlockOutlet
  /**
   * If one URL has more successes than this number in one second, only some of the further successes get a
   * record.
   */
  readonly successesPerSecond: number
  /** The keyed hash of users. If this option is absent, records name no user. */
  readonly hashUser?: UserHash | undefined
  /** Finds and hashes the values by which records can be found. If this option is absent, there are none. */
  readonly valuesOf?: ValuesOf | undefined
  /** Called with the number of records that were dropped because the outlet was full. */
  readonly onDropped: (count: number) => void
  /** Returns epoch milliseconds. */
  readonly now: () => number
}

export type LogObserver = Pick<
  PipelineObserver,
  'attempted' | 'delivered' | 'omitted' | 'parked' | 'deadLettered' | 'dropped'
> &
  Required<Pick<PipelineObserver, 'filtered'>> & {
    /** Passes the written blocks to the outlet. Call this method a few times in each second. */
    flush(): void
    /**
     * Writes a record for each URL that had successes since its last record, and then flushes. Call this
     * method once, at the end.
     */
    finish(): void
  }

/** The size in bytes at which a block is passed to the outlet. */
const blockBytes = 32 * 1024

const kindIndex = {
  attempted: 0,
  parked: 1,
  delivered: 2,
  dead: 3,
  superseded: 4,
  suppressed: 5,
  omitted: 6,
  filtered: 7,
} as const satisfies Record<LogKind, number>
const verdictIndex = new Map<string, number>(logVerdicts.map((verdict, index) => [verdict, index]))
const outcomeIndex = new Map<string, number>(logOutcomes.map((outcome, index) => [outcome, index]))

/**
 * Creates an observer that writes records about deliveries into blocks, one block for each unit. The observer
 * never waits and never throws. While the outlet is full, the observer drops records and counts them.
 *
 * Failures, parked deliveries, and successes of deliveries that already have a record get a record each. Only
 * some of the other successes and of the filtered messages get a record. If a delivery has a record, its end
 * is written too.
 */
export function createLogObserver(options: LogObserverOptions): LogObserver {
  return new StateWriter(options)
}

type RecordPlace = Pick<HeldRecord, 'topic' | 'partition' | 'offset' | 'timestampMs'>

/** It has no body, because it is kept for up to a second. */
type FilteredFrom = Omit<FilteredMessage, 'body'> & { readonly where: RecordPlace }

class StateWriter implements LogObserver {
  readonly #options: LogObserverOptions
  readonly #sampler: SuccessSampler<Delivery>
  readonly #filtered: SuccessSampler<FilteredFrom>
  readonly #writers = new Map<number, BlockWriter>()
  /**
   * The delivery of the record that was written last. It is `undefined` if the record's block has already
   * been passed to the outlet. `#lastIn`: the writer of the block.
   */
  #lastOf: Delivery | undefined
  #lastIn: BlockWriter | undefined
  /** The values of the next record. The same object is filled for each record. */
  readonly #state: WrittenState = emptyState()

  constructor(options: LogObserverOptions) {
    this.#options = options
    this.#sampler = new SuccessSampler(options.successesPerSecond)
    this.#filtered = new SuccessSampler(options.successesPerSecond)
  }

  attempted(delivery: Delivery, result: HookResult, durationMs: number): void {
    const { outcome, verdict, hookId } = result
    const atMs = this.#options.now()
    let weight = 1
    const isSuccess = verdict.kind === 'delivered'
    if (isSuccess && isOrdinary(delivery)) {
      weight = this.#sampler.weightOf(delivery, hookId, statusOf(outcome), durationMs, atMs)
      if (weight === 0) return
    }
    const state = this.#stateOf(delivery, atMs)
    state.kind = kindIndex.attempted
    state.hook = hookId
    state.weight = weight
    state.verdict = verdictIndex.get(verdict.kind) ?? 0
    state.outcome = outcomeIndex.get(outcome.kind) ?? 0
    state.status = statusOf(outcome)
    state.durationMs = durationMs
    state.error = errorOf(outcome)
    state.answer = outcome.kind === 'answer' ? outcome.body : undefined
    this.#write(delivery.pending.record.partition, delivery)
  }

  delivered(delivery: Delivery): void {
    if (this.#lastOf === delivery && this.#lastIn !== undefined) {
      // The record that was written last describes an attempt of this delivery, so it is marked as the end.
      this.#lastIn.markEnd()
      this.#lastOf = undefined
      return
    }
    if (!delivery.isInLog) return
    const state = this.#stateOf(delivery, this.#options.now())
    state.kind = kindIndex.delivered
    state.isEnd = true
    this.#write(delivery.pending.record.partition, delivery)
  }

  omitted(delivery: Delivery, hookId: string, why: string): void {
    const state = this.#stateOf(delivery, this.#options.now())
    state.kind = kindIndex.omitted
    state.hook = hookId
    state.reason = why
    this.#write(delivery.pending.record.partition, delivery)
  }

  parked(delivery: Delivery, why: string, waitMs: number): void {
    const state = this.#stateOf(delivery, this.#options.now())
    state.kind = kindIndex.parked
    state.reason = why
    state.waitMs = waitMs
    this.#write(delivery.pending.record.partition, delivery)
  }

  deadLettered(reason: string, _detail: string, where: HeldRecord, delivery: Delivery | undefined): void {
    const atMs = this.#options.now()
    const state = delivery === undefined ? this.#stateOfRecord(where, atMs) : this.#stateOf(delivery, atMs)
    state.kind = kindIndex.dead
    state.reason = reason
    state.isEnd = true
    this.#write(where.partition, delivery)
  }

  dropped(delivery: Delivery, why: 'superseded' | 'suppressed'): void {
    const state = this.#stateOf(delivery, this.#options.now())
    state.kind = kindIndex[why]
    state.isEnd = true
    this.#write(delivery.pending.record.partition, delivery)
  }

  filtered(reason: string, { body, ...message }: FilteredMessage, record: HeldRecord): void {
    const { topic, partition, offset, timestampMs } = record
    const from = { ...message, where: { topic, partition, offset, timestampMs } }
    const atMs = this.#options.now()
    const weight = this.#filtered.weightOf(from, reason, 0, 0, atMs)
    if (weight > 0) this.#writeFiltered(from, { reason, weight, atMs, values: this.#valuesOf(body) })
  }

  flush(): void {
    this.#tellLeftover(this.#options.now())
    for (const [unit, writer] of this.#writers) if (writer.count > 0) this.#giveAway(unit, writer)
  }

  finish(): void {
    this.#tellLeftover(Infinity)
    this.flush()
  }

  #tellLeftover(atMs: number): void {
    this.#sampler.leftover(atMs, ({ hook, unlogged, lastStatus, lastDurationMs, lastAtMs }, delivery) => {
      const state = this.#stateOf(delivery, lastAtMs)
      state.kind = kindIndex.attempted
      state.hook = hook
      state.weight = unlogged
      state.isEnd = true
      state.verdict = verdictIndex.get('delivered') ?? 0
      state.outcome = outcomeIndex.get('answer') ?? 0
      state.status = lastStatus
      state.durationMs = lastDurationMs
      this.#write(delivery.pending.record.partition, undefined)
    })
    this.#filtered.leftover(atMs, ({ hook: reason, unlogged, lastAtMs }, from) =>
      this.#writeFiltered(from, { reason, weight: unlogged, atMs: lastAtMs, values: '' }),
    )
  }

  #writeFiltered(
    from: FilteredFrom,
    { reason, weight, atMs, values }: { reason: string; weight: number; atMs: number; values: string },
  ): void {
    const state = this.#stateOfRecord(from.where, atMs)
    state.weight = weight
    state.kind = kindIndex.filtered
    state.isEnd = true
    state.reason = reason
    state.destination = from.destinationId
    state.source = from.sourceId
    state.messageId = from.messageId
    state.messageType = from.kind
    state.values = values
    this.#write(from.where.partition, undefined)
  }

  #stateOf(delivery: Delivery, atMs: number): WrittenState {
    const state = this.#state
    const { origin } = delivery
    state.atMs = atMs
    state.isEnd = false
    state.weight = 1
    state.destination = delivery.destinationId
    state.hook = ''
    state.source = delivery.sourceId
    state.messageId = delivery.messageId
    state.messageType = delivery.kind
    state.originTopic = origin.topic
    state.originPartition = origin.partition
    state.originOffset = origin.offset
    state.attempt = delivery.attempts
    state.verdict = 0
    state.outcome = 0
    state.status = 0
    state.durationMs = 0
    state.reason = ''
    state.error = ''
    state.waitMs = 0
    state.firstSeenMs = delivery.firstSeenMs
    const { hashUser } = this.#options
    state.user = hashUser === undefined || delivery.key === null ? '' : hashUser(delivery.key)
    state.job = delivery.replayJob
    state.answer = undefined
    state.values = this.#valuesOf(delivery.body)
    return state
  }

  #valuesOf(body: Buffer | undefined): string {
    const { valuesOf } = this.#options
    return valuesOf === undefined || body === undefined ? '' : valuesOf(body)
  }

  /** Fills `#state` for a Kafka record from which no delivery was made. */
  #stateOfRecord({ topic, partition, offset, timestampMs }: RecordPlace, atMs: number): WrittenState {
    return Object.assign(this.#state, emptyState(), {
      atMs,
      originTopic: topic,
      originPartition: partition,
      originOffset: offset,
      firstSeenMs: timestampMs,
    })
  }

  #write(unit: number, delivery: Delivery | undefined): void {
    const { outlet, onDropped } = this.#options
    this.#lastOf = undefined
    if (outlet.isFull) {
      onDropped(1)
      return
    }
    if (delivery !== undefined) delivery.isInLog = true
    const writer = this.#writerOf(unit)
    writer.add(this.#state)
    if (writer.length >= blockBytes) {
      // The block leaves the writer now, so its last record can't be marked as the end of this delivery
      // later. The end gets another record.
      this.#giveAway(unit, writer)
      return
    }
    this.#lastOf = delivery
    this.#lastIn = writer
  }

  #writerOf(unit: number): BlockWriter {
    let writer = this.#writers.get(unit)
    if (writer === undefined) {
      writer = new BlockWriter()
      this.#writers.set(unit, writer)
    }
    return writer
  }

  #giveAway(unit: number, writer: BlockWriter): void {
    this.#lastOf = undefined
    const { count } = writer
    this.#options.outlet.offer(unit, writer.take(), count)
  }
}

/**
 * Returns true if a successful delivery has no record in the delivery log yet, and if the success is most
 * likely its only event. Returns false for a replayed delivery, because each success of a replay gets a
 * record.
 */
function isOrdinary({ laneClass, attempts, isInLog, replayJob }: Delivery): boolean {
  return laneClass !== 'retry' && attempts <= 1 && !isInLog && replayJob === ''
}

function emptyState(): WrittenState {
  return {
    kind: 0,
    atMs: 0,
    isEnd: false,
    weight: 1,
    destination: '',
    hook: '',
    source: '',
    messageId: '',
    messageType: '',
    originTopic: '',
    originPartition: 0,
    originOffset: 0,
    attempt: 0,
    verdict: 0,
    outcome: 0,
    status: 0,
    durationMs: 0,
    reason: '',
    error: '',
    waitMs: 0,
    firstSeenMs: 0,
    user: '',
    job: '',
    answer: undefined,
    values: '',
  }
}

function statusOf(outcome: Outcome): number {
  return outcome.kind === 'answer' ? outcome.status : 0
}

/**
 * Returns the error of an outcome, as a text that never contains a URL or a header. For the kind `request`,
 * the text is empty, because the detail of such an outcome might contain a URL or a header.
 */
function errorOf(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'connection':
    case 'dns':
    case 'proxy':
    case 'files':
    case 'certificate':
      return outcome.code
    case 'address':
      return outcome.address
    case 'login':
      return outcome.detail
    case 'answer':
    case 'timeout':
    case 'request':
      return ''
  }
}
