import type { Connection } from './marks.ts'

/** What is read of a version of the catalog. */
type Connections = {
  readonly sources: ReadonlyMap<string, { readonly kind: string }>
  readonly destinations: ReadonlyMap<string, { readonly sources: readonly string[] }>
}

/**
 * Spaces that destinations have no more: what changes from here on is routed to others, and if they come back nobody tells
 * them of it.
 */
export function lostConnections(before: Connections, after: Connections): Connection[] {
  const lost: Connection[] = []
  for (const [destinationId, { sources }] of before.destinations) {
    const kept = after.destinations.get(destinationId)?.sources ?? []
    for (const spaceId of sources) {
      if (!isSpace(before, spaceId)) continue
      if (!isSpace(after, spaceId) || !kept.includes(spaceId)) lost.push({ destinationId, spaceId })
    }
  }
  return lost
}

function isSpace({ sources }: Connections, id: string): boolean {
  return sources.get(id)?.kind === 'audiences'
}
