import type { Connection } from './marks.ts'

/** The fields of a catalog that are needed to find connections. */
export type Connections = {
  readonly sources: ReadonlyMap<string, { readonly kind: string; readonly enabled: boolean }>
  readonly destinations: ReadonlyMap<
    string,
    { readonly sources: readonly string[]; readonly state: DestinationState }
  >
}

type DestinationState = 'on' | 'off' | 'paused' | 'auto_paused'

/**
 * The state that the connection between a destination and a space has by the catalog. `off`: the destination
 * or the space is switched off. `none`: the destination isn't connected to the space.
 */
export type ConnectionState = DestinationState | 'none'

/** A destination and a space to which it is connected, with the state of the connection. */
export type Joined = Connection & { readonly connectionState: DestinationState }

export function keyOf({ destinationId, spaceId }: Connection): string {
  return JSON.stringify([destinationId, spaceId])
}

/** Returns all connections between destinations and spaces, by `keyOf`. */
export function joinedBy({ sources, destinations }: Connections): ReadonlyMap<string, Joined> {
  const joined = new Map<string, Joined>()
  // Most installations have no spaces, and some have very many destinations.
  if (![...sources.values()].some(({ kind }) => kind === 'audiences')) return joined
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
