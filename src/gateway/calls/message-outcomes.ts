import { type Answer, success } from './answer.ts'
import { MAX_MESSAGE_ID_CHARACTERS } from '../../message/message-schemas.ts'
import type { Outline } from '../../message/message-outline.ts'
import type { TrackingKind } from '../messages/item.ts'
import type { GatewayObserver } from './gateway-events.ts'
import { adviceOn, type LeftOutReason } from '../messages/left-out-reasons.ts'

/** An entry in the answer's list of messages that were left out. */
type Rejected = {
  /** The index of the message in the batch, counted from 0. */
  readonly index: number
  /** The `messageId` from the client, if it is a string of a valid length. */
  readonly messageId?: string
  readonly reason: LeftOutReason
}

/** An answer names at most this number of left-out messages. Its field `rejectedCount` counts all of them. */
export const maxRejectedNamed = 100

/**
 * The outcomes of a request's messages. They are reported to the observer only once the whole request has
 * succeeded.
 */
export class MessageOutcomes {
  coalesced = 0
  lostDigits = 0
  readonly #taken = new Map<TrackingKind, number>()
  readonly #leftOut = new Map<LeftOutReason, number>()
  readonly #rejected: Rejected[] = []
  #rejectedCount = 0
  #detail: string | undefined

  take(kind: TrackingKind): void {
    this.#taken.set(kind, (this.#taken.get(kind) ?? 0) + 1)
  }

  /**
   * Remembers that a message is left out. `item` is the message's outline, and `index` is its
   * index in the request. `detail` says what is wrong.
   */
  leaveOut(reason: LeftOutReason, index: number, item: Outline | undefined, detail?: string): void {
    this.#detail ??= detail ?? adviceOn(reason)
    this.#leftOut.set(reason, (this.#leftOut.get(reason) ?? 0) + 1)
    this.#rejectedCount++
    if (this.#rejected.length === maxRejectedNamed) return
    const messageId = messageIdOf(item)
    this.#rejected.push(messageId === undefined ? { index, reason } : { index, messageId, reason })
  }

  /**
   * True if a message can't be written because it is nested too deeply, has too many keys, or has too large a
   * number. No client sends such a message by accident.
   */
  get isBeyondLimits(): boolean {
    return structuralReasons.some((reason) => this.#leftOut.has(reason))
  }

  /** True if none of the messages is taken, and at least one was left out. */
  get isRefusal(): boolean {
    return this.#rejectedCount > 0 && this.#taken.size === 0
  }

  tell(observer: GatewayObserver, sourceId: string): void {
    for (const [kind, count] of this.#taken) observer.acknowledged(kind, count)
    for (const [reason, count] of this.#leftOut) observer.leftOut(reason, count, sourceId)
    if (this.coalesced > 0) observer.coalesced(this.coalesced)
    if (this.lostDigits > 0) observer.digitsLost(this.lostDigits, sourceId)
  }

  /** Returns an answer with status 200 that names the messages that were left out. */
  answer(): Answer {
    if (this.#rejectedCount === 0) return success
    const body = { success: true, rejected: this.#rejected, rejectedCount: this.#rejectedCount }
    return { status: 200, body: JSON.stringify(body) }
  }

  /**
   * Returns the answer to a single call. If its message was left out, nothing of it is a success. The status
   * is 200 even then, because clients send a call again, for hours, that gets another one.
   */
  answerToSingle(): Answer {
    if (!this.isRefusal) return this.answer()
    const body = { success: false, message: this.#detail, rejected: this.#rejected, rejectedCount: 1 }
    return { status: 200, body: JSON.stringify(body) }
  }
}

const structuralReasons = ['nested_too_deep', 'too_many_keys', 'number_out_of_range'] as const

function messageIdOf(item: Outline | undefined): string | undefined {
  const messageId = item?.['messageId']
  if (typeof messageId !== 'string' || messageId === '') return undefined
  // A character takes one or two code units.
  if (messageId.length > 2 * MAX_MESSAGE_ID_CHARACTERS) return undefined
  return Array.from(messageId).length <= MAX_MESSAGE_ID_CHARACTERS ? messageId : undefined
}
