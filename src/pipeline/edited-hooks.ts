import type { DestinationDefinition } from '../delivery/endpoint.ts'
import { hookContentsOf } from '../delivery/hook-content.ts'
import { idsOf } from './decision.ts'
import type { Delivery } from './delivery.ts'

// A delivery remembers hooks by their ids: those that failed for good, that asked for a wait, or that got no
// request yet. An id may outlive the URL, the headers and the secrets of its hook. So beside the ids, a
// delivery has the content that each of these hooks had (`hookContents`).

/**
 * Makes a delivery forget what it remembers of hooks that were edited since. Each of them is then tried as if
 * it were new. Call this with the present definition of the delivery's destination, before the hooks for an
 * attempt or a wait are chosen.
 *
 * If the content of a hook isn't known, an earlier version of Sluice wrote the delivery's record. The hook
 * then counts as not edited.
 */
export function forgetEditedHooks(delivery: Delivery, definition: DestinationDefinition): void {
  const { hookContents } = delivery
  if (hookContents === undefined || hookContents.size === 0) return
  const edited = editedOf(hookContents, definition)
  if (edited.length === 0) return
  const isKept = (id: string): boolean => !edited.includes(id)
  delivery.failedHooks = delivery.failedHooks.filter(isKept)
  delivery.notBeforeMs = new Map([...delivery.notBeforeMs].filter(([id]) => isKept(id)))
  // A hook with another URL has got no request yet, whatever its former URL has got.
  const isUnsent = (id: string): boolean => edited.includes(id) || delivery.unsentHooks.includes(id)
  if (delivery.attempts > 0) delivery.unsentHooks = idsOf(definition.hooks).filter(isUnsent)
  delivery.hookContents = new Map([...hookContents].filter(([id]) => isKept(id)))
}

/**
 * Notes the contents of the hooks of an attempt. `definition`: the definition with which the attempt was
 * made.
 */
export function noteHookContents(delivery: Delivery, definition: DestinationDefinition): void {
  const contents = hookContentsOf(definition)
  const former = [...(delivery.hookContents ?? [])].filter(([id]) => !contents.has(id))
  delivery.hookContents = former.length === 0 ? contents : new Map([...former, ...contents])
}

/**
 * Returns true if the destination has a hook now that an attempt could not know, because the catalog was
 * edited after the attempt had begun. `then`: the definition with which the attempt was made.
 */
export function hasOtherHooks(now: DestinationDefinition, then: DestinationDefinition): boolean {
  if (now === then) return false
  const contents = hookContentsOf(then)
  return [...hookContentsOf(now)].some(([id, content]) => contents.get(id) !== content)
}

function editedOf(
  contents: ReadonlyMap<string, string>,
  definition: DestinationDefinition,
): readonly string[] {
  return [...hookContentsOf(definition)].flatMap(([id, content]) => {
    const then = contents.get(id)
    return then === undefined || then === content ? [] : [id]
  })
}
