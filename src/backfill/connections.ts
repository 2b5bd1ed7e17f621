import type { Connection } from './marks.ts'

/** What is read of a version of the catalog. */
export type Connections = {
  readonly sources: ReadonlyMap<string, { readonly kind: string; readonly enabled: boolean }>
  readonly destinations: ReadonlyMap<
    string,
    { readonly sources: readonly string[]; readonly state: DestinationState }
  >
}

type DestinationState = 'on' | 'off' | 'paused'

/** How the catalog joins a destination and a space. `off`: one of them is switched off. */
export type ConnectionState = DestinationState | 'none'

/** A destination and a space that it has. */
export type Joined = Connection & { readonly connectionState: DestinationState }

/** The same for the same connection. */
export function keyOf({ destinationId, spaceId }: Connection): string {
  return JSON.stringify([destinationId, spaceId])
}

/** The destinations of audience spaces, each with the space, by `keyOf`. */
export function joinedBy({ sources, destinations }: Connections): ReadonlyMap<string, Joined> {
  const joined = new Map<string, Joined>()
  for (const [destinationId, destination] of destinations) {
    for (const spaceId of destination.sources) {
      const space = sources.get(spaceId)
      if (space?.kind !== 'audiences') continue
      const connectionState = space.enabled ? destination.state : 'off'
      joined.set(keyOf({ destinationId, spaceId }), { destinationId, spaceId, connectionState })
    }
  }
  return joined
}
