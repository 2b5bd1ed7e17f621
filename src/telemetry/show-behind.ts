import type { WorkerMetrics } from './worker-metrics.ts'

/** The part of the catalog that `showBehind` reads. */
type Connections = {
  readonly sources: ReadonlyMap<string, { readonly kind: string }>
  readonly destinations: ReadonlyMap<string, { readonly sources: readonly string[] }>
}

/**
 * Sets the metric that counts the destinations which lack a value of an audience or computed trait. A missing
 * value counts only if the catalog connects the destination to the value's space.
 */
export function showBehind(
  { needsBackfill, perDestination }: Pick<WorkerMetrics, 'needsBackfill' | 'perDestination'>,
  behind: readonly { readonly destinationId: string; readonly spaceId: string }[],
  { sources, destinations }: Connections,
): void {
  const present = new Set<string>()
  for (const { destinationId, spaceId } of behind) {
    const isSpace = sources.get(spaceId)?.kind === 'audiences'
    if (isSpace && destinations.get(destinationId)?.sources.includes(spaceId) === true)
      present.add(destinationId)
  }
  needsBackfill.reset()
  if (!perDestination) needsBackfill.set(present.size)
  else for (const destination of present) needsBackfill.set({ destination }, 1)
}
