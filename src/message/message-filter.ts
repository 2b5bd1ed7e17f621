import type { MessageKind } from './message-schemas.ts'
import { memberOf } from './json/outline.ts'

/**
 * The messages that a destination gets. `types`: the kinds of these messages. `events`: the names of the
 * `track` events among them. `undefined`: all kinds, or all names.
 */
export type MessageFilter = {
  readonly types: readonly MessageKind[] | undefined
  readonly events: readonly string[] | undefined
}

/**
 * Returns a function that tells whether a filter lets a message pass. `body` is the canonical body of the
 * message. It is read only for a filter with names of events, and only once for all filters. A `delete`
 * passes every filter, because data about the user must be deleted everywhere.
 */
export function filtering(type: MessageKind, body: Uint8Array): (filter: MessageFilter) => boolean {
  if (type === 'delete') return () => true
  let name: unknown
  let isKnown = false
  return ({ types, events }) => {
    if (types !== undefined && !types.includes(type)) return false
    if (events === undefined || type !== 'track') return true
    if (!isKnown) {
      name = nameOfEvent(body)
      isKnown = true
    }
    return typeof name === 'string' && events.includes(name)
  }
}

function nameOfEvent(body: Uint8Array): unknown {
  return memberOf(Buffer.from(body.buffer, body.byteOffset, body.length).toString(), 'event')
}
