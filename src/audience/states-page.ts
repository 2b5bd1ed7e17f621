import { decodeEntry } from './entry.ts'
import type { PropertyState, PropertySubject } from './property-state.ts'
import { isPresent } from './state-record.ts'
import type { StateStore } from './store.ts'
import { rangeOf, statesPrefix, subjectKey, subjectOf } from './store-keys.ts'

/** A state among those of a space: they are in the order of their properties, and then of their users. */
export type StatePlace = readonly [property: string, userId: string]

export type StatesQuery = {
  readonly spaceId: string
  /** The state behind which it goes on; `null`: from the first. */
  readonly after: StatePlace | null
  /** How many are looked at. */
  readonly count: number
  /** Also users who have left (`false`), and traits without a value any more (`null`). */
  readonly withLeft: boolean
}

export type StatesPage = {
  /** Of those that were looked at, the ones that are meant. */
  readonly states: readonly HeldState[]
  /** The last that was looked at; `null`: there are no more. */
  readonly last: StatePlace | null
}

export type HeldState = {
  readonly subject: PropertySubject
  readonly state: PropertyState
  /** Of its record in `memberships`. */
  readonly offset: number
}

/**
 * Reads from where `after` is, with nothing kept between two calls: what is written meanwhile is there or
 * not.
 */
export async function readStates(
  store: StateStore,
  { spaceId, after, count, withLeft }: StatesQuery,
): Promise<StatesPage> {
  const range = rangeOf(statesPrefix(spaceId))
  const from = after === null ? range.from : keyBehind(spaceId, after)
  const reader = store.range({ ...range, from })
  try {
    const entries = await reader.next(count)
    const states = entries.flatMap(([key, text]) => heldStateOf(key, text) ?? [])
    return { states: states.filter(({ state }) => withLeft || isPresent(state)), last: lastOf(entries) }
  } finally {
    await reader.close()
  }
}

/** The key that is next to the one of the state, whether there is such a state or not. */
function keyBehind(spaceId: string, [property, userId]: StatePlace): string {
  return `${subjectKey({ kind: 'property', spaceId, property, userId })}\0`
}

function heldStateOf(key: string, text: string): HeldState | undefined {
  const subject = subjectOf(key)
  const entry = decodeEntry(text)
  if (subject?.kind !== 'property' || entry.kind !== 'property') return undefined
  return { subject, state: entry.state, offset: entry.offset }
}

function lastOf(entries: readonly (readonly [key: string, value: string])[]): StatePlace | null {
  const subject = subjectOf(entries.at(-1)?.[0] ?? '')
  return subject?.kind === 'property' ? [subject.property, subject.userId] : null
}
