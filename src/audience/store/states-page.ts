import { decodeEntry } from './entry.ts'
import { isPresent } from '../records/state-record.ts'
import type { StateStore } from './store.ts'
import { rangeOf, statesPrefix, storeKeyOf, stateKeyOf } from './store-keys.ts'
import type { PropertyState, PropertyStateKey } from '../records/version.ts'

/**
 * The place of a state in the list of the states of its space. The list is sorted by property and then by
 * user.
 */
export type StatePlace = readonly [property: string, userId: string]

export type StatesQuery = {
  readonly spaceId: string
  /** The place after which the page begins. `null`: the page begins with the first state. */
  readonly after: StatePlace | null
  readonly count: number
  /**
   * True to include the states of users who have left an audience (value `false`), and of traits that have no
   * value any more (value `null`).
   */
  readonly withLeft: boolean
}

export type StatesPage = {
  /** The states that were read, without the states that the query leaves out. */
  readonly states: readonly HeldState[]
  /** The place of the last state that was read. `null`: there are no more states. */
  readonly last: StatePlace | null
}

export type HeldState = {
  readonly stateKey: PropertyStateKey
  readonly state: PropertyState
  /** The offset of the state's record in `memberships`. */
  readonly offset: number
}

/**
 * Reads a page of states. Nothing is kept between two calls, so a page may or may not contain writes that
 * were made after the previous page was read.
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

/**
 * Returns the lowest possible key that is higher than the key of the state. A state with this key need not
 * exist.
 */
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
