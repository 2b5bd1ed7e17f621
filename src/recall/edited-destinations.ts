import isEqual from 'fast-deep-equal'
import type { Destination } from '../catalog/catalog.ts'

/** The fields of a destination that decide what its requests look like and where they go. */
type Content = Pick<
  Destination,
  | 'state'
  | 'hooks'
  | 'sharedSecret'
  | 'nextSharedSecret'
  | 'sharedSecretEndsAtMs'
  | 'standardWebhooks'
  | 'signingKeys'
  | 'timeoutMs'
>

/** The destinations of a catalog, as far as this file needs them. */
export type Destinations = ReadonlyMap<string, Content>

/**
 * Returns the destinations that an edit of the catalog gives another chance: those that are `on` now and
 * weren't before, and those whose requests are different now. `ids`: those that the edit may concern.
 */
export function givenAnotherChance(
  before: Destinations,
  now: Destinations,
  ids: Iterable<string> = now.keys(),
): readonly string[] {
  const given: string[] = []
  for (const id of ids) {
    const former = before.get(id)
    // Of a large import, all are new.
    if (former === undefined) continue
    const destination = now.get(id)
    if (destination === undefined || former === destination) continue
    if (destination.state !== 'on') continue
    if (former.state !== 'on' || isOther(former, destination)) given.push(id)
  }
  return given
}

/** Returns true if a request to the destination may look different now. A hook less is no difference. */
function isOther(former: Content, now: Content): boolean {
  if (!isEqual(contentOf(former), contentOf(now))) return true
  return !now.hooks.every((hook) => former.hooks.some((other) => other === hook || isEqual(other, hook)))
}

function contentOf(destination: Content): Omit<Content, 'state' | 'hooks'> {
  const { sharedSecret, nextSharedSecret, sharedSecretEndsAtMs, standardWebhooks } = destination
  const { signingKeys, timeoutMs } = destination
  return {
    sharedSecret,
    nextSharedSecret,
    sharedSecretEndsAtMs,
    standardWebhooks,
    signingKeys,
    timeoutMs,
  }
}
