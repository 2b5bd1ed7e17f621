import { headerText, type OriginPlace, parseOrigin, type ReceivedHeaders } from '../message/record-headers.ts'

/** The most records of one topic and unit that are remembered. A killed owner queues fewer in a second. */
const most = 8_192

/** A new message for a destination, and the record from which it was made. */
export type NewMessage = {
  readonly destinationId: string
  readonly messageId: string
  readonly origin: OriginPlace
}

/** What was made from the records of one topic. */
type OfTopic = {
  /** The ids of the messages by origin and destination, in the order in which they were queued. */
  readonly ids: Map<string, string>
  /** The last offset of an origin, by destination. */
  readonly last: Map<string, number>
}

/**
 * The new messages that other owners of a unit were the last to queue. An owner that is killed may not have
 * committed that it queued them. Then the next owner reads them again, and must not queue or send them once
 * more.
 */
export class QueuedBefore {
  readonly #topics = new Map<string, OfTopic>()

  /** Notes a record of `waiting`, by its headers. */
  note(headers: ReceivedHeaders): void {
    const origin = parseOrigin(headerText(headers, 'origin') ?? '')
    const destinationId = headerText(headers, 'destination-id')
    const messageId = headerText(headers, 'message-id')
    if (origin === undefined || destinationId === undefined || messageId === undefined) return
    const { ids, last } = this.#of(origin.topic)
    ids.set(keyOf({ destinationId, origin }), messageId)
    for (const key of ids.keys()) {
      if (ids.size <= most) break
      ids.delete(key)
    }
    last.set(destinationId, Math.max(origin.offset, last.get(destinationId) ?? -1))
  }

  has(message: NewMessage): boolean {
    return this.#topics.get(message.origin.topic)?.ids.get(keyOf(message)) === message.messageId
  }

  /** Returns true if a message that came after this one was queued. */
  hasLater({ destinationId, origin: { topic, offset } }: NewMessage): boolean {
    return offset < (this.#topics.get(topic)?.last.get(destinationId) ?? -1)
  }

  /** Forgets what was made from the records of a topic, because none of them is read again any more. */
  forget(topic: string): void {
    this.#topics.delete(topic)
  }

  #of(topic: string): OfTopic {
    let found = this.#topics.get(topic)
    if (found === undefined) this.#topics.set(topic, (found = { ids: new Map(), last: new Map() }))
    return found
  }
}

function keyOf({ destinationId, origin }: Omit<NewMessage, 'messageId'>): string {
  return `${origin.partition}/${origin.offset} ${destinationId}`
}
