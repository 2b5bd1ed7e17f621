import { hash } from 'node:crypto'
import { globOf, isGlob } from './glob.ts'
import type { MessageKind } from './message-schemas.ts'
import { memberOf } from './message-outline.ts'
import { parseTimestamp } from './timestamp.ts'

/**
 * The messages that a destination gets. `types`: the kinds of these messages. `events`: the names of the
 * `track` events among them, each of which may have a `*` (`glob.ts`). `undefined`: all kinds, or all names.
 * `historical`: false if messages from the past are left out (`historicalAfterMs`).
 */
export type MessageFilter = {
  readonly types: readonly MessageKind[] | undefined
  readonly events: readonly string[] | undefined
  readonly historical?: boolean | undefined
  /** The percentage of users whose messages the destination gets. */
  readonly sample?: { readonly percent: number } | undefined
  /** The text of a condition in CEL (`src/conditions`). Only `src/routing` looks at it. */
  readonly condition?: string | undefined
}

/**
 * A message is historical if its `timestamp` is more than so many milliseconds before its `receivedAt`.
 * Phones that were offline send messages of the last hours, and imports send those of the past.
 */
const historicalAfterMs = 24 * 3_600_000

/** What a filter says about a message, without its condition. `unsampled`: its user isn't in the sample. */
export type Filtered = 'passes' | 'excluded' | 'unsampled'

/**
 * Returns a function that tells whether a filter lets a message pass, apart from its condition. `body` is the
 * canonical body of the message. It is read only if a filter needs it, and only once for all filters. A
 * `delete` passes every filter, because data about the user must be deleted everywhere.
 */
export function filtering(type: MessageKind, body: Uint8Array): (filter: MessageFilter) => Filtered {
  if (type === 'delete') return () => 'passes'
  let text: string | undefined
  const member = (name: string): unknown => {
    text ??= Buffer.from(body.buffer, body.byteOffset, body.length).toString()
    return memberOf(text, name)
  }
  let event: { readonly name: unknown } | undefined
  let isHistorical: boolean | undefined
  let place: number | undefined
  return ({ types, events, historical = true, sample }) => {
    if (types !== undefined && !types.includes(type)) return 'excluded'
    if (!historical) {
      isHistorical ??= isFromThePast(member('timestamp'), member('receivedAt'))
      if (isHistorical) return 'excluded'
    }
    if (events !== undefined && type === 'track') {
      event ??= { name: member('event') }
      if (typeof event.name !== 'string' || !isNamed(events, event.name)) return 'excluded'
    }
    if (sample === undefined) return 'passes'
    place ??= placeOf(member('userId') ?? member('anonymousId'))
    return place < sample.percent ? 'passes' : 'unsampled'
  }
}

/** The patterns of each list of names that has any. */
const patternsOf = new WeakMap<readonly string[], readonly ((text: string) => boolean)[]>()

function isNamed(events: readonly string[], name: string): boolean {
  if (events.includes(name)) return true
  let patterns = patternsOf.get(events)
  if (patterns === undefined) patternsOf.set(events, (patterns = events.filter(isGlob).map(globOf)))
  return patterns.some((matches) => matches(name))
}

/**
 * Returns the place of a user among all users, as a percentage from 0 to below 100. It depends on the id
 * alone. So all destinations with the same percentage get the same users, a higher percentage adds users and
 * takes none away, and all workers and versions agree.
 */
function placeOf(userId: unknown): number {
  const digest = hash('sha256', typeof userId === 'string' ? userId : '', 'hex')
  return (Number.parseInt(digest.slice(0, 12), 16) / 2 ** 48) * 100
}

function isFromThePast(timestamp: unknown, receivedAt: unknown): boolean {
  if (typeof timestamp !== 'string' || typeof receivedAt !== 'string') return false
  const [atMs, receivedMs] = [parseTimestamp(timestamp), parseTimestamp(receivedAt)]
  return atMs !== undefined && receivedMs !== undefined && receivedMs - atMs > historicalAfterMs
}
