import type { WorkerMetrics } from './worker-metrics.ts'

/** A URL whose breaker is open. */
type OpenHook = { readonly destinationId: string; readonly hookId: string; readonly openForMs: number }

/**
 * Sets the metrics of open breakers: how many URLs have an open breaker, and how long the breakers have been
 * open. With `perDestination`, each URL with an open breaker has a series. Otherwise there is one series,
 * with the longest time.
 */
export function showOpenHooks(
  {
    openBreakers,
    breakerOpen,
    perDestination,
  }: Pick<WorkerMetrics, 'openBreakers' | 'breakerOpen' | 'perDestination'>,
  hooks: readonly OpenHook[],
): void {
  openBreakers.set(hooks.length)
  breakerOpen.reset()
  if (perDestination) {
    for (const { destinationId: destination, hookId: hook, openForMs } of hooks)
      breakerOpen.set({ destination, hook }, openForMs / 1_000)
  } else breakerOpen.set(Math.max(0, ...hooks.map(({ openForMs }) => openForMs)) / 1_000)
}
