import type { HookModel } from './hook-models.ts'

const open = 0
const delivered = 1
const dead = 2

/** What became of the messages of one destination, and of each of them at each hook. */
export class Book {
  readonly hooks: readonly HookPage[]
  /** Messages that have come. */
  messages = 0
  /** Dead letters by their reason. */
  readonly dead = new Map<string, number>()
  /** Records put on retry topics. */
  parked = 0
  #ended = 0
  readonly #fate: Uint8Array
  readonly #appendedMs: Float64Array

  constructor(models: readonly HookModel[], messages: number) {
    this.hooks = models.map((model) => new HookPage(model, messages))
    this.#fate = new Uint8Array(messages)
    this.#appendedMs = new Float64Array(messages)
  }

  /** Messages that are neither delivered nor dead letters. */
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

/** What one hook was asked, by message. */
export class HookPage {
  readonly model: HookModel
  requests = 0
  inFlight = 0
  inFlightMost = 0
  /** Messages that were posted to it at least once. */
  tried = 0
  /** Messages that it has taken at least once. */
  taken = 0
  readonly #requests: Uint16Array
  readonly #isTaken: Uint8Array
  /** From the append of each message to its first request, in milliseconds. */
  readonly #firstAfterMs: Float32Array

  constructor(model: HookModel, messages: number) {
    this.model = model
    this.#requests = new Uint16Array(messages)
    this.#isTaken = new Uint8Array(messages)
    this.#firstAfterMs = new Float32Array(messages)
  }

  /** A request of a message is made, so long after the message was appended; gives how many it has had before. */
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

  /** From append to first request, of those that had one: ascending, in milliseconds. */
  firstTries(): Float32Array {
    return this.#firstAfterMs.slice(0, this.tried).sort()
  }
}
