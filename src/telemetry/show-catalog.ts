import type { CommonMetrics } from './common-metrics.ts'

/** The part of the catalog that `showCatalog` reads. */
type Shown = {
  readonly version: string
  readonly destinations: ReadonlyMap<string, { readonly state: 'on' | 'off' | 'paused' | 'auto_paused' }>
}

/** Sets the metrics about the catalog in force: its version, and the number of destinations in each state. */
export function showCatalog(metrics: CommonMetrics, catalog: Shown): void {
  const { catalogInfo } = metrics
  catalogInfo.reset()
  catalogInfo.set({ version: catalog.version }, 1)
  showDestinations(metrics, catalog)
}

/** Sets the metric of the number of destinations in each state. */
export function showDestinations(
  { destinations }: Pick<CommonMetrics, 'destinations'>,
  catalog: Pick<Shown, 'destinations'>,
): void {
  const counts = { on: 0, paused: 0, auto_paused: 0, off: 0 }
  for (const { state } of catalog.destinations.values()) counts[state]++
  for (const [state, count] of Object.entries(counts)) destinations.set({ state }, count)
}
