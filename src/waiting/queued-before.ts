import type { OriginPlace } from '../message/record-headers.ts'
import type { QueuedMessage, SourcedMessage } from './queued-message.ts'

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
  /** The ids of the messages by record and destination, in the order in which they were queued. */
  readonly ids: Map<string, string>
  /** The last offset of an origin, by destination. */
  readonly last: Map<string, number>
}

/**
 * The messages that other owners of a unit were the last to queue. An owner that is killed may not have
 * committed that it queued them. Then the next owner reads them again, and must not queue or send them once
 * more.
 */
export class QueuedBefore {
  readonly #topics = new Map<string, OfTopic>()

  /**
   * Notes a message. If it is replayed, its origin may have another delivery, of which this says nothing. If
   * it isn't certain that it stays in the queue, only its place is noted, and it counts as not queued.
   */
  note(message: QueuedMessage, isCertain: boolean): void {
    const { source, origin, destinationId, isReplayed } = message
    if (isCertain) this.#remember(message, source)
    if (isReplayed) return
    const isFirst = origin.topic === source.topic && origin.offset === source.offset
    if (isCertain && !isFirst) this.#remember(message, origin)
    const { last } = this.#of(origin.topic)
    last.set(destinationId, Math.max(origin.offset, last.get(destinationId) ?? -1))
  }

  has(message: SourcedMessage): boolean {
    const { source, messageId } = message
    return this.#topics.get(source.topic)?.ids.get(keyIn(message, source)) === messageId
  }

  /** Returns true if a message that came after this one was queued. */
  hasLater({ destinationId, origin: { topic, offset } }: NewMessage): boolean {
    return offset < (this.#topics.get(topic)?.last.get(destinationId) ?? -1)
  }

  /** Forgets what was made from the records of a topic, because none of them is read again any more. */
  forget(topic: string): void {
    this.#topics.delete(topic)
  }

  #remember(message: QueuedMessage, place: OriginPlace): void {
    const { ids } = this.#of(place.topic)
    ids.set(keyIn(message, place), message.messageId)
    for (const key of ids.keys()) {
      if (ids.size <= most) break
      ids.delete(key)
    }
  }

  #of(topic: string): OfTopic {
    let found = this.#topics.get(topic)
    if (found === undefined) this.#topics.set(topic, (found = { ids: new Map(), last: new Map() }))
    return found
  }
}

function keyIn({ destinationId }: Pick<SourcedMessage, 'destinationId'>, place: OriginPlace): string {
  return `${place.partition}/${place.offset} ${destinationId}`
}
