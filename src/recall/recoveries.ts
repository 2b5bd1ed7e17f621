import isEqual from 'fast-deep-equal'
import type { Destination } from '../catalog/catalog.ts'

/** The fields of a destination that decide what its requests look like and where they go. */
type Content = Pick<
  Destination,
  'state' | 'hooks' | 'sharedSecret' | 'nextSharedSecret' | 'sharedSecretEndsAtMs' | 'standardWebhooks'
>

/** The destinations of a catalog, as far as this file needs them. */
export type Destinations = ReadonlyMap<string, Content>

/**
 * Returns the destinations that an edit of the catalog gives another chance: those that are `on` now and
 * weren't before, and those whose requests are different now.
 */
export function givenAnotherChance(before: Destinations, now: Destinations): readonly string[] {
  return [...now].flatMap(([id, destination]) => {
    const former = before.get(id)
    if (former === undefined || former === destination || destination.state !== 'on') return []
    return former.state !== 'on' || isOther(former, destination) ? [id] : []
  })
}

/** Returns true if a request to the destination may look different now. A hook less is no difference. */
function isOther(former: Content, now: Content): boolean {
  if (!isEqual(contentOf(former), contentOf(now))) return true
  return !now.hooks.every((hook) => former.hooks.some((other) => other === hook || isEqual(other, hook)))
}

function contentOf(destination: Content): Omit<Content, 'state' | 'hooks'> {
  const { sharedSecret, nextSharedSecret, sharedSecretEndsAtMs, standardWebhooks } = destination
  return { sharedSecret, nextSharedSecret, sharedSecretEndsAtMs, standardWebhooks }
}

type OpenHook = { readonly destinationId: string; readonly openForMs: number }

/**
 * Notices which destinations recover: all their breakers are closed again, and one of them was open for at
 * least `leastMs`.
 */
export class Recoveries {
  readonly #leastMs: number
  /** The longest time for which a hook of a destination with an open breaker was seen to be open. */
  #open: ReadonlyMap<string, number> = new Map()

  constructor(leastMs: number) {
    this.#leastMs = leastMs
  }

  /** Takes the hooks whose breakers are open now, and returns the destinations that have recovered. */
  look(hooks: readonly OpenHook[]): readonly string[] {
    const before = this.#open
    const open = new Map<string, number>()
    for (const { destinationId, openForMs } of hooks)
      open.set(destinationId, Math.max(openForMs, open.get(destinationId) ?? before.get(destinationId) ?? 0))
    this.#open = open
    return [...before].flatMap(([id, openForMs]) => (open.has(id) || openForMs < this.#leastMs ? [] : [id]))
  }
}
