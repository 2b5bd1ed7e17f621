import type { MessageKind } from './message-schemas.ts'
import { memberOf } from './message-outline.ts'
import { parseTimestamp } from './timestamp.ts'

/**
 * The messages that a destination gets. `types`: the kinds of these messages. `events`: the names of the
 * `track` events among them. `undefined`: all kinds, or all names. `historical`: false if messages from the
 * past are left out (`historicalAfterMs`).
 */
export type MessageFilter = {
  readonly types: readonly MessageKind[] | undefined
  readonly events: readonly string[] | undefined
  readonly historical?: boolean | undefined
}

/**
 * A message is historical if its `timestamp` is more than so many milliseconds before its `receivedAt`.
 * Phones that were offline send messages of the last hours, and imports send those of the past.
 */
const historicalAfterMs = 24 * 3_600_000

/**
 * Returns a function that tells whether a filter lets a message pass. `body` is the canonical body of the
 * message. It is read only for a filter with names of events or without historical messages, and only once
 * for all filters. A `delete` passes every filter, because data about the user must be deleted everywhere.
 */
export function filtering(type: MessageKind, body: Uint8Array): (filter: MessageFilter) => boolean {
  if (type === 'delete') return () => true
  let text: string | undefined
  const member = (name: string): unknown => {
    text ??= Buffer.from(body.buffer, body.byteOffset, body.length).toString()
    return memberOf(text, name)
  }
  let event: { readonly name: unknown } | undefined
  let isHistorical: boolean | undefined
  return ({ types, events, historical = true }) => {
    if (types !== undefined && !types.includes(type)) return false
    if (!historical) {
      isHistorical ??= isFromThePast(member('timestamp'), member('receivedAt'))
      if (isHistorical) return false
    }
    if (events === undefined || type !== 'track') return true
    event ??= { name: member('event') }
    return typeof event.name === 'string' && events.includes(event.name)
  }
}

function isFromThePast(timestamp: unknown, receivedAt: unknown): boolean {
  if (typeof timestamp !== 'string' || typeof receivedAt !== 'string') return false
  const [atMs, receivedMs] = [parseTimestamp(timestamp), parseTimestamp(receivedAt)]
  return atMs !== undefined && receivedMs !== undefined && receivedMs - atMs > historicalAfterMs
}
