import type { HookModel } from './hook-models.ts'

const open = 0
const delivered = 1
const dead = 2

/** Records the fate of the messages of one destination, and of each message at each hook. */
export class Book {
  readonly hooks: readonly HookPage[]
  /** The number of messages that have arrived. */
  messages = 0
  readonly dead = new Map<string, number>()
  /** The number of records that were written to retry topics. */
  parked = 0
  #ended = 0
  readonly #fate: Uint8Array
  readonly #appendedMs: Float64Array

  constructor(models: readonly HookModel[], messages: number) {
    this.hooks = models.map((model) => new HookPage(model, messages))
    this.#fate = new Uint8Array(messages)
    this.#appendedMs = new Float64Array(messages)
  }

  /** The number of messages that are neither delivered nor dead letters. */
  get unfinished(): number {
    return this.messages - this.#ended
  }

  appended(message: number, nowMs: number): void {
    this.messages++
    this.#appendedMs[message] = nowMs
  }

  appendedMsOf(message: number): number {
    return this.#appendedMs[message] ?? 0
  }

  taken(message: number): void {
    this.#end(message, delivered)
  }

  died(message: number, reason: string): void {
    this.dead.set(reason, (this.dead.get(reason) ?? 0) + 1)
    this.#end(message, dead)
  }

  #end(message: number, fate: number): void {
    if (this.#fate[message] === open) this.#ended++
    this.#fate[message] = fate
  }
}

/** Records the requests to one hook, by message. */
export class HookPage {
  readonly model: HookModel
  requests = 0
  inFlight = 0
  inFlightMost = 0
  /** The number of messages that were posted to the hook at least once. */
  tried = 0
  /** The number of messages that the hook has accepted at least once. */
  taken = 0
  readonly #requests: Uint16Array
  readonly #isTaken: Uint8Array
  /**
   * The times from the append of a message to its first request, in milliseconds, in order of the first
   * requests.
   */
  readonly #firstAfterMs: Float32Array

  constructor(model: HookModel, messages: number) {
    this.model = model
    this.#requests = new Uint16Array(messages)
    this.#isTaken = new Uint8Array(messages)
    this.#firstAfterMs = new Float32Array(messages)
  }

  /**
   * Records a request of a message, `afterMs` after the append of the message. Returns the number of earlier
   * requests of the message.
   */
  posted(message: number, afterMs: number): number {
    const before = this.#requests[message] ?? 0
    if (before === 0) this.#firstAfterMs[this.tried++] = afterMs
    this.#requests[message] = before + 1
    this.requests++
    this.inFlight++
    this.inFlightMost = Math.max(this.inFlightMost, this.inFlight)
    return before
  }

  answered(message: number, isTaken: boolean): void {
    this.inFlight--
    if (!isTaken || this.#isTaken[message] === 1) return
    this.#isTaken[message] = 1
    this.taken++
  }

  /**
   * Returns the times from the append of a message to its first request, in milliseconds, in ascending order.
   */
  firstTries(): Float32Array {
    return this.#firstAfterMs.slice(0, this.tried).sort()
  }
}
