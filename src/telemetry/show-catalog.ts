import type { CommonMetrics } from './common-metrics.ts'

/** The part of the catalog that is read here. */
type Shown = {
  readonly version: string
  readonly destinations: ReadonlyMap<string, { readonly state: 'on' | 'off' | 'paused' }>
}

/** Shows the version in force, and its destinations. */
export function showCatalog(
  { catalogInfo, catalogRefused, destinations }: CommonMetrics,
  catalog: Shown,
): void {
  catalogInfo.reset()
  catalogInfo.set({ version: catalog.version }, 1)
  catalogRefused.set(0)
  const counts = { on: 0, paused: 0, off: 0 }
  for (const { state } of catalog.destinations.values()) counts[state]++
  for (const [state, count] of Object.entries(counts)) destinations.set({ state }, count)
}
