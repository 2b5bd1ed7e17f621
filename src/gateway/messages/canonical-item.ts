import { randomUUID } from 'node:crypto'
import { Field, isMessageId, isPlainKind, isSound, type PlainKind } from '../../message/canonical-fields.ts'
import type { FieldPlaces } from '../../message/field-places.ts'
import { correctTimestamp, type Occasion, occasionOf } from './clock.ts'
import { type ItemContext, mayGrowTooLarge, type ReadyMessage } from './item.ts'
import { MessageWriter } from './message-writer.ts'
import { maxMessageBytes } from './request-limits.ts'
import type { SharedBytes } from './shared-bytes.ts'

/**
 * The places of the bytes and of the fields of a message in the body of a request. The message is in
 * canonical form (as JSON.stringify writes it).
 */
export type ScannedItem = {
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
  readonly places: FieldPlaces
}

/**
 * Limit on the keys that `CanonicalItems` adds to a message, not counting the keys of the batch's shared
 * objects.
 */
const mostAddedKeys = 8
/** The longest `sentAt` that `CanonicalItems` accepts, in characters. No time is written as a longer text. */
const mostSentAt = 100
/** The length of a time that `formatTimestamp` wrote. */
const timestampBytes = '2009-11-10T23:00:00.000Z'.length
const uuidBytes = 36

const keyOf = {
  type: Buffer.from('"type":"'),
  messageId: Buffer.from('"messageId":"'),
  timestamp: Buffer.from('"timestamp":"'),
  originalTimestamp: Buffer.from('"originalTimestamp":'),
  context: Buffer.from('"context":'),
  integrations: Buffer.from('"integrations":'),
} as const
const endQuote = Buffer.from('"')

/** The values that `CanonicalItems` found for a message, before it writes the message. */
type Plan = {
  readonly kind: PlainKind
  readonly key: string
  readonly givenId: string | undefined
  readonly timestamp: string
}

/**
 * Completes the messages of one request by copying their bytes, without parsing them. This is possible only
 * if a message is spelled as JSON.stringify would spell it. `checkItem` completes all other messages.
 */
export class CanonicalItems {
  readonly #surroundings: ItemContext
  readonly #writer = new MessageWriter()
  readonly #context: SharedBytes | undefined
  readonly #integrations: SharedBytes | undefined
  readonly #isPossible: boolean
  readonly #mostKeys: number
  /**
   * The members that are added at the end of a message. `withoutSentAt`: the members for a message that has
   * its own `sentAt`. `whole`: the members for a message without a `sentAt`.
   */
  readonly #tail: { readonly withoutSentAt: Buffer; readonly whole: Buffer }
  /** The fields of the present message that aren't copied as they are, in the order of their places. */
  readonly #cuts: number[] = []

  constructor(surroundings: ItemContext) {
    const { context, integrations, sentAt, arrival, limits } = surroundings
    this.#surroundings = surroundings
    const isFaulty = context?.fault !== undefined || integrations?.fault !== undefined
    this.#context = isFaulty ? undefined : context?.asBytes
    this.#integrations = isFaulty ? undefined : integrations?.asBytes
    this.#isPossible =
      !isFaulty &&
      this.#context?.isUsable !== false &&
      this.#integrations?.isUsable !== false &&
      isPlainSentAt(sentAt)
    const sharedKeys = (context?.keys ?? 0) + (integrations?.keys ?? 0)
    this.#mostKeys = limits.maxKeys - mostAddedKeys - sharedKeys
    const received = `"receivedAt":"${arrival.text}"`
    const isSent = sentAt !== undefined && sentAt !== null
    this.#tail = {
      withoutSentAt: Buffer.from(received),
      whole: Buffer.from(isSent ? `"sentAt":${JSON.stringify(sentAt)},${received}` : received),
    }
  }

  /**
   * Returns the complete message, with the same bytes that `checkItem` would return. If it isn't certain that
   * they are the same, or if `checkItem` would leave the message out, returns `undefined`.
   */
  complete(item: ScannedItem): ReadyMessage | undefined {
    const plan = this.#isPossible ? this.#planOf(item) : undefined
    if (plan === undefined) return undefined
    const value = this.#write(item, plan)
    if (value === undefined) return undefined
    const { kind, key, givenId } = plan
    return { ok: true, kind, key, value, bytes: value.length, givenId }
  }

  #planOf({ places }: ScannedItem): Plan | undefined {
    const kind = this.#kindOf(places)
    if (!isPlainKind(kind) || !isSound(places, kind)) return undefined
    if (places.keys > this.#mostKeys || places.has(Field.receivedAt)) return undefined
    const key = places.textOf(places.isFilled(Field.userId) ? Field.userId : Field.anonymousId)
    const givenId = places.textOf(Field.messageId)
    if (key === undefined || (places.has(Field.messageId) && !isMessageId(givenId))) return undefined
    const timestamp = this.#timestampOf(places)
    return timestamp === undefined ? undefined : { kind, key, givenId, timestamp }
  }

  /**
   * Returns the kind of a message. Returns `undefined` if the message's `type` contradicts the kind in the
   * path of the request.
   */
  #kindOf(places: FieldPlaces): string | undefined {
    const { kind } = this.#surroundings
    if (kind !== undefined && !places.has(Field.type)) return kind
    const type = places.textOf(Field.type)
    return kind === undefined || kind === type ? type : undefined
  }

  #timestampOf(places: FieldPlaces): string | undefined {
    const occasion = this.#occasionOf(places)
    if (occasion === undefined || places.isNull(Field.originalTimestamp)) return undefined
    const field = places.has(Field.timestamp) ? Field.timestamp : Field.originalTimestamp
    const original = places.textOf(field)
    // If `timestamp` is an empty text, the time may be in `originalTimestamp`. `checkItem` handles this case.
    if (places.has(field) && (original === undefined || original === '')) return undefined
    return correctTimestamp(original, occasion)
  }

  /**
   * Returns the times that complete a message. If the message has no `sentAt` of its own, these are the times
   * of its request.
   */
  #occasionOf(places: FieldPlaces): Occasion | undefined {
    if (!places.has(Field.sentAt)) return this.#surroundings
    const sentAt = places.textOf(Field.sentAt)
    return sentAt === undefined ? undefined : occasionOf(sentAt, this.#surroundings.arrival)
  }

  #write(item: ScannedItem, plan: Plan): Buffer | undefined {
    const { bytes, start, end, places } = item
    this.#findCuts(places)
    const length = this.#lengthOf(item)
    if (length > maxMessageBytes || mayGrowTooLarge(length, this.#surroundings.limits)) return undefined
    const writer = this.#writer
    writer.begin(length)
    let from = start + 1
    for (const field of this.#cuts) {
      writer.members(bytes, from, places.keyStartOf(field) - 1)
      if (field === Field.timestamp) this.#writeText(keyOf.timestamp, plan.timestamp)
      from = places.endOf(field) + 1
    }
    writer.members(bytes, from, end - 1)
    this.#writeMissing(item, plan)
    return writer.finished()
  }

  #findCuts(places: FieldPlaces): void {
    const cuts = this.#cuts
    cuts.length = 0
    if (places.has(Field.timestamp)) cuts.push(Field.timestamp)
    if (places.has(Field.writeKey)) cuts.push(Field.writeKey)
    if (this.#context !== undefined && places.has(Field.context)) cuts.push(Field.context)
    if (this.#integrations !== undefined && places.has(Field.integrations)) cuts.push(Field.integrations)
    if (cuts.length > 1) cuts.sort((one, other) => places.keyStartOf(one) - places.keyStartOf(other))
  }

  /** Returns the length in bytes of the message that `#write` writes. Each member counts with one comma. */
  #lengthOf({ bytes, start, end, places }: ScannedItem): number {
    let length = end - start + this.#tailOf(places).length + 1
    for (const field of this.#cuts) length -= places.endOf(field) - places.keyStartOf(field) + 1
    const { kind } = this.#surroundings
    if (kind !== undefined && !places.has(Field.type)) length += keyOf.type.length + kind.length + 2
    if (!places.has(Field.messageId)) length += keyOf.messageId.length + uuidBytes + 2
    if (this.#addsOriginal(places)) {
      length += keyOf.originalTimestamp.length + 1
      length += places.endOf(Field.timestamp) - places.startOf(Field.timestamp)
    }
    length += keyOf.timestamp.length + timestampBytes + 2
    if (this.#context !== undefined) {
      length += keyOf.context.length + this.#context.measure(bytes, places, Field.context) + 1
    }
    if (this.#integrations !== undefined) {
      length += keyOf.integrations.length + this.#integrations.measure(bytes, places, Field.integrations) + 1
    }
    return length
  }

  /** Writes the members that a message doesn't have yet, in the order in which `checkItem` adds them. */
  #writeMissing({ bytes, places }: ScannedItem, { kind, timestamp }: Plan): void {
    const writer = this.#writer
    if (!places.has(Field.type)) this.#writeText(keyOf.type, kind)
    if (!places.has(Field.messageId)) this.#writeText(keyOf.messageId, randomUUID())
    if (this.#addsOriginal(places)) {
      writer.members(keyOf.originalTimestamp, 0, keyOf.originalTimestamp.length)
      writer.bytes(bytes, places.startOf(Field.timestamp), places.endOf(Field.timestamp))
    }
    if (!places.has(Field.timestamp)) this.#writeText(keyOf.timestamp, timestamp)
    const tail = this.#tailOf(places)
    writer.members(tail, 0, tail.length)
    if (this.#context !== undefined) {
      writer.members(keyOf.context, 0, keyOf.context.length)
      this.#context.write(writer, bytes, places, Field.context)
    }
    if (this.#integrations !== undefined) {
      writer.members(keyOf.integrations, 0, keyOf.integrations.length)
      this.#integrations.write(writer, bytes, places, Field.integrations)
    }
  }

  /** Writes a member whose value is a text. `before`: the member's key, a colon and a quotation mark. */
  #writeText(before: Buffer, text: string): void {
    this.#writer.members(before, 0, before.length)
    this.#writer.text(text)
    this.#writer.bytes(endQuote, 0, 1)
  }

  #addsOriginal(places: FieldPlaces): boolean {
    return places.has(Field.timestamp) && !places.has(Field.originalTimestamp)
  }

  #tailOf(places: FieldPlaces): Buffer {
    return places.has(Field.sentAt) ? this.#tail.withoutSentAt : this.#tail.whole
  }
}

function isPlainSentAt(sentAt: unknown): boolean {
  return (
    sentAt === undefined || sentAt === null || (typeof sentAt === 'string' && sentAt.length <= mostSentAt)
  )
}
