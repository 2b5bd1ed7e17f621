import { madeMessageId, type Origin } from './entered.ts'
import { attributesFields, type Message, type MessageKind } from './message-schemas.ts'
import { formatTimestamp, isCanonicalTimestamp } from './timestamp.ts'
import { isAbsent, type Validated } from './validate.ts'

/**
 * A message in the form in which receivers get it. It has the fields that the producer sent, and the fields
 * that every message has.
 */
type CanonicalMessage = {
  type: MessageKind
  /** The version. It is absent on a `delete`, unless the producer sent one. */
  version?: unknown
  messageId: string
  timestamp: string
  context: object
  userId?: string | null
  anonymousId?: string | null
  integrations?: Readonly<Record<string, unknown>> | null
  [field: string]: unknown
}

/**
 * Returns a valid message, or its outline, with the fields that each message has (see `enter`). Returns
 * `undefined` if the message has no timestamp, and the time of the record can't be written.
 */
export function complete(
  { message, timestampMs }: Extract<Validated, { ok: true }>,
  origin: Origin,
): CanonicalMessage | undefined {
  const timestamp = spellTimestamp(message.timestamp, timestampMs ?? origin.timestampMs)
  return timestamp === undefined ? undefined : withMissing(message, timestamp, origin)
}

function spellTimestamp(sent: string | null | undefined, timestampMs: number): string | undefined {
  return !isAbsent(sent) && isCanonicalTimestamp(sent) ? sent : formatTimestamp(timestampMs)
}

function withMissing(sent: Message, timestamp: string, origin: Origin): CanonicalMessage {
  const { type } = sent
  const head = type === 'delete' ? { type } : { version: 1, type }
  // The producer's fields are spread and never assigned by name, because an assignment to `__proto__` would
  // set the prototype.
  const message: CanonicalMessage = {
    ...head,
    ...sent,
    timestamp,
    messageId: isAbsent(sent.messageId) ? madeMessageId(origin) : sent.messageId,
    context: sent.context ?? {},
  }
  if (type !== 'delete' && typeof message.version !== 'number') message.version = 1
  const attributes = attributesFields[type]
  if (attributes !== undefined) message[attributes] ??= {}
  if (sent.type === 'alias') {
    const userId = isAbsent(sent.userId) ? sent['User ID'] : sent.userId
    const previousId = isAbsent(sent.previousId) ? sent['Previous ID'] : sent.previousId
    Object.assign(message, {
      userId,
      previousId,
      'User ID': isAbsent(sent['User ID']) ? userId : sent['User ID'],
      'Previous ID': isAbsent(sent['Previous ID']) ? previousId : sent['Previous ID'],
    })
  }
  return message
}
