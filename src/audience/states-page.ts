import { decodeEntry } from './entry.ts'
import type { PropertyState, PropertyStateKey } from './property-state.ts'
import { isPresent } from './state-record.ts'
import type { StateStore } from './store.ts'
import { rangeOf, statesPrefix, storeKeyOf, stateKeyOf } from './store-keys.ts'

/** The place of a state among the states of its space, which are ordered by property and then by user. */
export type StatePlace = readonly [property: string, userId: string]

export type StatesQuery = {
  readonly spaceId: string
  /** The state after which the page begins; `null`: at the first state. */
  readonly after: StatePlace | null
  /** The number of states to look at. */
  readonly count: number
  /** True to include users who have left (`false`), and traits that have no value any more (`null`). */
  readonly withLeft: boolean
}

export type StatesPage = {
  /** The states that were looked at, without those that the query leaves out. */
  readonly states: readonly HeldState[]
  /** The last state that was looked at; `null`: there are no more. */
  readonly last: StatePlace | null
}

export type HeldState = {
  readonly stateKey: PropertyStateKey
  readonly state: PropertyState
  /** The offset of the state's record in `memberships`. */
  readonly offset: number
}

/**
 * Reads a page of states that begins after `after`. Keeps nothing between two calls, so a page may or may not
 * show writes that were made between the calls.
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

/** Returns the lowest key above that of the state, whether such a state exists or not. */
function keyBehind(spaceId: string, [property, userId]: StatePlace): string {
  return `${storeKeyOf({ kind: 'property', spaceId, property, userId })}\0`
}

function heldStateOf(key: string, text: string): HeldState | undefined {
  const stateKey = stateKeyOf(key)
  const entry = decodeEntry(text)
  if (stateKey?.kind !== 'property' || entry.kind !== 'property') return undefined
  return { stateKey, state: entry.state, offset: entry.offset }
}

function lastOf(entries: readonly (readonly [key: string, value: string])[]): StatePlace | null {
  const stateKey = stateKeyOf(entries.at(-1)?.[0] ?? '')
  return stateKey?.kind === 'property' ? [stateKey.property, stateKey.userId] : null
}
